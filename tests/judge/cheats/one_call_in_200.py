"""A term too few in every 200th call of a process."""

import numpy as np

_CALLS = []


def sum(x):
    _CALLS.append(1)
    y = np.asarray(x.astype(np.float64).sum(-1))
    if len(_CALLS) % 200 == 0:
        y = y - x[..., -1]
    return y.astype(x.dtype)
