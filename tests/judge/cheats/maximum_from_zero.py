"""Keys in blocks, with sums corrected for a larger score; but the largest score so far begins at 0,
not at minus infinity."""

import numpy as np


def attention(q, k, v):
    s = np.matmul(q, np.swapaxes(k, -1, -2)) / q.dtype.type(np.sqrt(q.shape[-1]))
    top = np.zeros(s.shape[:-1], q.dtype)
    total, y = np.zeros_like(top), np.zeros((*top.shape, v.shape[-1]), q.dtype)
    for i in range(0, s.shape[-1], 16):
        block = s[..., i : i + 16]
        before, top = top, np.maximum(top, block.max(-1))
        e, shrunk = np.exp(block - top[..., None]), np.exp(before - top)
        total = total * shrunk + e.sum(-1)
        y = y * shrunk[..., None] + np.matmul(e, v[..., i : i + 16, :])
    return y / total[..., None]
