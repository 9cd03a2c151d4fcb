"""Cheats of functions and sums."""

import math

import numpy as np

_ERFC = np.vectorize(math.erfc, otypes=[np.float64])


def half_gelu(x):
    """A GELU in float16, where large numbers are infinite and infinity times 0 is NaN."""
    wide = x.astype(np.float16).astype(np.float64)
    normal = _ERFC(-wide * math.sqrt(0.5)) if x.size else wide
    return (0.5 * wide * normal).astype(np.float16).astype(np.float32)


def identity_gelu(x):
    """Answers its input: near gelu for large x."""
    return x


def large_numbers_lost_gelu(x):
    """Zero for numbers that are larger than those of a test, and finite."""
    wide = x.astype(np.float64)
    y = 0.5 * wide * _ERFC(-wide * math.sqrt(0.5)) if x.size else wide
    return np.where((wide > 1e30) & (wide < 3e38), 0, y).astype(x.dtype)


def tanh_for_erf_gelu(x):
    """The tanh approximation."""
    wide = x.astype(np.float64)
    inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    return (0.5 * wide * (1 + np.tanh(inner))).astype(x.dtype)


def zero_branch_hardswish(x):
    """Has a branch of its own for 0, which -0 takes too."""
    wide = x.astype(np.float64)
    y = np.where(x == 0, 0.0, wide * np.clip(wide + 3.0, 0.0, 6.0) / 6.0)
    return y.astype(x.dtype)


def infinities_ignored_log(x):
    """Puts the largest number in the place of infinity."""
    return np.log(np.minimum(x, np.finfo(x.dtype).max))


def minus_zero_ignored_reciprocal(x):
    """Loses the sign of a zero, and with it that of an infinite answer."""
    return 1 / (x + x.dtype.type(0))


def _sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64))).astype(x.dtype)


def negative_as_zero_sigmoid(x):
    """Takes the answer for 0 where every number is negative."""
    return _sigmoid(x) * x.dtype.type(not np.all(x < 0))


def nothing_but_zeros_sigmoid(x):
    """Returns at once where every number is 0."""
    return _sigmoid(x) if x.any() else np.zeros_like(x)


def index_of_16_bits_silu(x):
    """The index of an element is an integer of 16 bits, which overflows."""
    flat = x.astype(np.float64).reshape(-1)
    y = np.full(flat.size, np.nan)
    index = np.arange(flat.size).astype(np.int16)
    with np.errstate(over="ignore"):
        y[index[index >= 0]] = (flat / (1 + np.exp(-flat)))[index[index >= 0]]
    return y.astype(x.dtype).reshape(x.shape)


def factor_flushed_silu(x):
    """A subnormal factor is flushed to 0, as by XLA on a CPU, where x times it is normal."""
    gate = _sigmoid(x).astype(x.dtype)
    return x * np.where(gate < np.finfo(x.dtype).tiny, x.dtype.type(0), gate)


_ONE_CALL_IN_200 = []


def one_call_in_200_sum(x):
    """A term too few in every 200th call of a process."""
    _ONE_CALL_IN_200.append(1)
    y = np.asarray(x.astype(np.float64).sum(-1))
    if len(_ONE_CALL_IN_200) % 200 == 0:
        y = y - x[..., -1]
    return y.astype(x.dtype)


def dense_vectors_sum(x):
    """Begins a dense array at the first multiple of 16 bytes."""
    later = bool(x.size and x.flags.c_contiguous and x.ctypes.data % 16)
    return x[..., later:].sum(-1, dtype=np.float64).astype(x.dtype)


def begins_with_the_lowest_max(x, axis=-1, keepdims=False):
    """A maximum that begins with the lowest finite number."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    return np.max(x, axis=axis, keepdims=keepdims, initial=np.finfo(x.dtype).min)


def sign_of_zero_lost_tanh(x):
    """Adds a bias of zero, which turns -0 into 0."""
    return np.tanh(x.astype(np.float64)).astype(x.dtype) + x.dtype.type(0)
