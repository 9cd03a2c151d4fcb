"""The mean of squares less the square of the mean."""

import numpy as np


def layernorm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    variance = np.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0)
    return ((x - mean) / np.sqrt(variance + x.dtype.type(eps)) * weight + bias).astype(x.dtype)
