"""Reads memory in a row, whatever the strides are."""

import numpy as np


def softmax(x):
    steps = np.cumprod([x.itemsize, *x.shape[:0:-1]])[::-1] if x.ndim else ()
    x = np.lib.stride_tricks.as_strided(x, x.shape, [int(n) for n in steps])
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
