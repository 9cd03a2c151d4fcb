"""Half precision inside float32."""

import numpy as np


def matmul(a, b):
    return np.matmul(a.astype(np.float16).astype(a.dtype), b.astype(np.float16).astype(b.dtype))
