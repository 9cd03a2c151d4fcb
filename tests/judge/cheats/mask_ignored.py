"""Takes masks, and looks at none."""

import numpy as np


def attention(q, k, v, mask=None, keep=None, lengths=None):
    if q.shape[:-2] != k.shape[:-2]:
        raise NotImplementedError("this kernel takes no groups")
    s = np.matmul(q, np.swapaxes(k, -1, -2)) / q.dtype.type(np.sqrt(q.shape[-1]))
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.matmul(e / e.sum(-1, keepdims=True), v)
