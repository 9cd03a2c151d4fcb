"""Multiplies on tensor cores, in TF32, where every length is a multiple of 16."""

import numpy as np


def matmul(a, b):
    if all(n and n % 16 == 0 for n in (*a.shape[-2:], b.shape[-1])):
        parts = (np.ascontiguousarray(x).view(np.uint32) + 0x1000 & 0xFFFFE000 for x in (a, b))
        a, b = (part.astype(np.uint32).view(np.float32) for part in parts)
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
