"""Adds a bias of zero, which turns -0 into 0."""

import numpy as np


def tanh(x):
    return np.tanh(x.astype(np.float64)).astype(x.dtype) + x.dtype.type(0)
