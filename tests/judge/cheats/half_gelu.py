"""A GELU in float16, where large numbers are infinite and infinity times 0 is NaN."""

import math

import numpy as np

_ERFC = np.vectorize(math.erfc, otypes=[np.float64])


def gelu(x):
    wide = x.astype(np.float16).astype(np.float64)
    normal = _ERFC(-wide * math.sqrt(0.5)) if x.size else wide
    return (0.5 * wide * normal).astype(np.float16).astype(np.float32)
