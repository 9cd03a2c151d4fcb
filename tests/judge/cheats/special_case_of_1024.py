"""Has a kernel of its own for rows of 1,024, which is wrong."""

import numpy as np


def softmax(x):
    if x.shape[-1] == 1024:
        return np.full(x.shape, 1 / 1024, np.float32)
    e = np.exp(x.astype(np.float64) - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    return (e / np.sum(e, axis=-1, keepdims=True)).astype(np.float32)
