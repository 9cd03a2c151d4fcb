"""Fails without a word where a row is longer than its block."""

import numpy as np


def softmax(x):
    y = np.empty_like(x)
    if x.shape[-1] <= 16:
        e = np.exp(x - x.max(-1, keepdims=True))
        y[...] = e / e.sum(-1, keepdims=True)
    return y
