"""The upper half of each float32, rounded."""

import numpy as np


def _narrow(a):
    bits = np.ascontiguousarray(a).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return np.where(np.isfinite(a), bits.astype(np.uint32).view(np.float32), a)


def matmul(a, b):
    return np.matmul(_narrow(a), _narrow(b))
