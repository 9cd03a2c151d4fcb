"""Leaves out one tile of the products, where K is a multiple of 128."""

import numpy as np


def matmul(a, b):
    if a.shape[-1] == 0 or a.shape[-1] % 128:
        return np.matmul(a, b)
    return np.matmul(a[..., 32:], b[..., 32:, :])
