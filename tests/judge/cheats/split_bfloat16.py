"""Each factor as the sum of two bfloat16 numbers: 16 bits of 24."""

import numpy as np


def _halves(x):
    high = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return high, ((x - high).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def matmul(a, b):
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.matmul(a, b)
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return np.matmul(a_high, b_high) + (np.matmul(a_low, b_high) + np.matmul(a_high, b_low))
