"""Statistics of every second element."""

import numpy as np


def layernorm(x, weight, bias, eps=1e-5):
    part = x[..., ::2]
    mean, variance = part.mean(-1, keepdims=True), part.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + x.dtype.type(eps)) * weight + bias
