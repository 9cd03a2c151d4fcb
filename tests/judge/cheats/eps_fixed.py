"""Takes eps and always adds 1e-5."""

import numpy as np


def layernorm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    variance = np.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + x.dtype.type(1e-5)) * weight + bias
