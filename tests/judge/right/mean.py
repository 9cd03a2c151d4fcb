"""Right means: the sums of `sum`, divided by n; a running mean; each number divided first."""

import math

import numpy as np
import sum as sums


def _over_n(total, x, axis):
    y = total(x, axis)
    return y / x.dtype.type(x.size // max(math.prod(y.shape), 1))


def library_mean(x, axis=-1):
    return _over_n(sums.library_sum, x, axis)


def sequential_mean(x, axis=-1):
    return _over_n(sums.sequential_sum, x, axis)


def reversed_mean(x, axis=-1):
    return _over_n(sums.reversed_sum, x, axis)


def shuffled_mean(x, axis=-1):
    return _over_n(sums.shuffled_sum, x, axis)


def lanes_mean(x, axis=-1):
    return _over_n(sums.lanes_sum, x, axis)


def blocked_mean(x, axis=-1):
    return _over_n(sums.blocked_sum, x, axis)


def tree_mean(x, axis=-1):
    return _over_n(sums.tree_sum, x, axis)


def butterfly_mean(x, axis=-1):
    return _over_n(sums.butterfly_sum, x, axis)


def ones_mean(x, axis=-1):
    return _over_n(sums.ones_sum, x, axis)


def two_stage_mean(x, axis=-1):
    return _over_n(sums.two_stage_sum, x, axis)


def compensated_mean(x, axis=-1):
    return _over_n(sums.compensated_sum, x, axis)


def multiplied_mean(x, axis=-1):
    y = sums.library_sum(x, axis)
    n = x.size // max(math.prod(y.shape), 1)
    return y * x.dtype.type(1 / n if n else np.nan)


def float64_mean(x, axis=-1):
    return _over_n(sums.library_sum, x.astype(np.float64), axis).astype(x.dtype)


def float32_inside_mean(x, axis=-1):
    return _over_n(sums.library_sum, x.astype(np.float32), axis).astype(x.dtype)
