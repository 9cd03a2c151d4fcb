"""Right log softmaxes: the logarithm subtracted last or with the maximum, online, in orders."""

import functools

import numpy as np
from softmax import _online


def _by(x, total, together=False):
    """x - m - log S, or x - (m + log S)."""
    m = x.max(-1, keepdims=True)
    log = np.log(total(np.exp(x - m)))[..., None]
    return x - (m + log) if together else (x - m) - log


def _pairwise(e):
    return e.sum(-1)


def _last(e):
    return np.add.accumulate(e, axis=-1)[..., -1]


def subtracted_log_softmax(x):
    return _by(x, _pairwise)


def log_sum_exp_log_softmax(x):
    return _by(x, _pairwise, together=True)


def sequential_log_softmax(x):
    return _by(x, _last)


def reversed_log_softmax(x):
    return _by(x, lambda e: _last(e[..., ::-1]))


def shuffled_log_softmax(x):
    order = np.random.default_rng(0).permutation(x.shape[-1])
    return _by(x, lambda e: _last(e[..., order]))


def lanes_log_softmax(x):
    return _by(x, lambda e: functools.reduce(np.add, [e[..., i::4].sum(-1) for i in range(4)]))


def blocked_log_softmax(x):
    def total(e):
        return functools.reduce(np.add, [e[..., i : i + 8].sum(-1) for i in range(0, n, 8)])

    n = x.shape[-1]
    return _by(x, total, together=True)


def exp2_log_softmax(x):
    kind = x.dtype.type
    m = x.max(-1, keepdims=True)
    total = np.exp2((x - m) * kind(np.log2(np.e))).sum(-1, keepdims=True)
    return (x - m) - np.log2(total) * kind(np.log(2))


def online_log_softmax(x):
    m, total = _online(x, 1)
    return (x - m) - np.log(total)


def flash_log_softmax(x):
    m, total = _online(x, 16)
    return (x - m) - np.log(total)


def float64_sum_log_softmax(x):
    return _by(x, lambda e: e.sum(-1, dtype=np.float64).astype(x.dtype))


def float64_log_softmax(x):
    return _by(x.astype(np.float64), _pairwise).astype(x.dtype)


def float32_inside_log_softmax(x):
    return _by(x.astype(np.float32), _pairwise).astype(x.dtype)
