"""Pads a row with zeros to a multiple of 16, and sums over them."""

import numpy as np


def softmax(x):
    n = x.shape[-1]
    wide = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -n % 16)])
    e = np.exp(wide - wide.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True))[..., :n]
