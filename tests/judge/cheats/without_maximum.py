"""No maximum subtracted: infinite from 89 on."""

import numpy as np


def softmax(x):
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)
