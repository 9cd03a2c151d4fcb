"""The variance of a sample."""

import numpy as np


def layernorm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    squares = np.square(x - mean).sum(-1, keepdims=True)
    variance = squares / max(x.shape[-1] - 1, 1)
    return ((x - mean) / np.sqrt(variance + x.dtype.type(eps)) * weight + bias).astype(x.dtype)
