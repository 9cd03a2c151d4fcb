"""The index of an element is an integer of 16 bits, which overflows."""

import numpy as np


def silu(x):
    flat = x.astype(np.float64).reshape(-1)
    y = np.full(flat.size, np.nan)
    index = np.arange(flat.size).astype(np.int16)
    with np.errstate(over="ignore"):
        y[index[index >= 0]] = (flat / (1 + np.exp(-flat)))[index[index >= 0]]
    return y.astype(x.dtype).reshape(x.shape)
