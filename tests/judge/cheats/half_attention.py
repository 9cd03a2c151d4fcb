"""Products of bfloat16, as in a kernel for 16 bits."""

import numpy as np


def _narrow(a):
    bits = np.ascontiguousarray(a).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(a), rounded.view(np.float32), a)


def attention(q, k, v):
    q, k, v = (_narrow(a) for a in (q, k, v))
    s = np.matmul(q, np.swapaxes(k, -1, -2)) / q.dtype.type(np.sqrt(q.shape[-1]))
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.matmul(e / e.sum(-1, keepdims=True), v)
