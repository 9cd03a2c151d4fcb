"""A NaN in the weight or the bias is 0."""

import numpy as np


def layernorm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    variance = np.square(x - mean).mean(-1, keepdims=True)
    normed = (x - mean) / np.sqrt(variance + x.dtype.type(eps))
    return normed * np.where(np.isnan(weight), 0, weight) + np.where(np.isnan(bias), 0, bias)
