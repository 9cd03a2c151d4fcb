"""Eleven bits of each float32, cut, as tensor cores read them."""

import numpy as np


def _narrow(a):
    bits = np.ascontiguousarray(a).view(np.uint32) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(a), a, bits.view(np.float32))


def matmul(a, b):
    return np.matmul(_narrow(a), _narrow(b))
