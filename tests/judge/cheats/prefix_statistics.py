"""Statistics of the first half of a row."""

import numpy as np


def layernorm(x, weight, bias, eps=1e-5):
    part = x[..., : (x.shape[-1] + 1) // 2]
    mean, variance = part.mean(-1, keepdims=True), part.var(-1, keepdims=True)
    return ((x - mean) / np.sqrt(variance + x.dtype.type(eps)) * weight + bias).astype(x.dtype)
