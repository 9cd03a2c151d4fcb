"""Takes subnormal numbers for 0."""

import numpy as np


def matmul(a, b):
    tiny = np.finfo(a.dtype).tiny
    a, b = (np.where(np.abs(x) < tiny, x * 0, x) for x in (a, b))
    return np.matmul(a, b)
