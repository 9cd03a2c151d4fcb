"""Works on pairs of queries; the last of an odd number gets its neighbour's answer."""

import numpy as np


def attention(q, k, v):
    s = np.matmul(q, np.swapaxes(k, -1, -2)) / q.dtype.type(np.sqrt(q.shape[-1]))
    e = np.exp(s - s.max(-1, keepdims=True))
    y = np.matmul(e / e.sum(-1, keepdims=True), v)
    if y.shape[-2] % 2 and y.shape[-2] > 1:
        y[..., -1, :] = y[..., -2, :]
    return y
