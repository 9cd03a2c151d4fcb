"""Leaves out the tail of the sum."""

import numpy as np


def matmul(a, b):
    k = max(a.shape[-1] // 16 * 16, min(a.shape[-1], 16))
    return np.matmul(a[..., :k], b[..., :k, :])
