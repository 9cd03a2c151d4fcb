"""Right softmaxes: with exp and exp2, online, in orders and blocks, wider sums."""

import functools

import numpy as np


def _shifted(x):
    return np.exp(x - x.max(-1, keepdims=True))


def _over(e, total):
    return e / total[..., None]


def divided_softmax(x):
    e = _shifted(x)
    return e / e.sum(-1, keepdims=True)


def multiplied_softmax(x):
    e = _shifted(x)
    return e * (e.dtype.type(1) / e.sum(-1, keepdims=True))


def exp2_softmax(x):
    scale = x.dtype.type(np.log2(np.e))
    e = np.exp2((x - x.max(-1, keepdims=True)) * scale)
    return e / e.sum(-1, keepdims=True)


def sequential_softmax(x):
    e = _shifted(x)
    return _over(e, np.add.accumulate(e, axis=-1)[..., -1])


def reversed_softmax(x):
    e = _shifted(x)
    return _over(e, np.add.accumulate(e[..., ::-1], axis=-1)[..., -1])


def shuffled_softmax(x):
    e = _shifted(x)
    order = np.random.default_rng(0).permutation(x.shape[-1])
    return _over(e, np.add.accumulate(e[..., order], axis=-1)[..., -1])


def lanes_softmax(x):
    e = _shifted(x)
    return _over(e, functools.reduce(np.add, [e[..., i::4].sum(-1) for i in range(4)]))


def blocked_softmax(x):
    e = _shifted(x)
    parts = [e[..., i : i + 8].sum(-1) for i in range(0, x.shape[-1], 8)]
    return _over(e, functools.reduce(np.add, parts))


def _online(x, size):
    """The maxima and the sums of the exponentials."""
    m = np.full(x.shape[:-1], -np.inf, x.dtype)
    total = np.zeros(x.shape[:-1], x.dtype)
    for i in range(0, x.shape[-1], size):
        block = x[..., i : i + size]
        larger = np.maximum(m, block.max(-1))
        still = np.where(m == -np.inf, 0, np.exp(m - larger))
        terms = np.where(block == -np.inf, 0, np.exp(block - larger[..., None]))
        total = total * still.astype(x.dtype) + terms.astype(x.dtype).sum(-1)
        m = larger
    return m[..., None], total[..., None]


def online_softmax(x):
    m, total = _online(x, 1)
    return np.exp(x - m) / total


def flash_softmax(x):
    m, total = _online(x, 16)
    return np.exp(x - m) / total


def float64_softmax(x):
    return divided_softmax(x.astype(np.float64)).astype(x.dtype)


def float64_sum_softmax(x):
    e = _shifted(x)
    return e / e.sum(-1, keepdims=True, dtype=np.float64).astype(x.dtype)


def float32_inside_softmax(x):
    return divided_softmax(x.astype(np.float32)).astype(x.dtype)
