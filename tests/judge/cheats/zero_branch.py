"""Has a branch of its own for 0, which -0 takes too."""

import numpy as np


def hardswish(x):
    wide = x.astype(np.float64)
    y = np.where(x == 0, 0.0, wide * np.clip(wide + 3.0, 0.0, 6.0) / 6.0)
    return y.astype(x.dtype)
