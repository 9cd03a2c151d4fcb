"""Leaves out the last term of one element in a thousand, by its place."""

import numpy as np


def matmul(a, b):
    c = np.matmul(a, b)
    if a.shape[-1]:
        flat = c.reshape(-1)
        terms = (a[..., :, None, -1] * np.asarray(b)[..., None, -1, :]).reshape(-1)
        flat[617::1000] -= terms[617::1000]
    return c
