"""Right RMS norms: sums in orders and blocks, fused and compensated, factors in other places."""

import functools

import numpy as np


def _over_root(x, weight, eps, total):
    n, one = x.dtype.type(x.shape[-1]), x.dtype.type(1)
    mean = (total(np.square(x)) / n)[..., None]
    return x * (one / np.sqrt(mean + x.dtype.type(eps))) * weight


def pairwise_rms_norm(x, weight, eps=1e-5):
    return _over_root(x, weight, eps, lambda a: a.sum(-1))


def sequential_rms_norm(x, weight, eps=1e-5):
    return _over_root(x, weight, eps, lambda a: np.add.accumulate(a, axis=-1)[..., -1])


def reversed_rms_norm(x, weight, eps=1e-5):
    return _over_root(x, weight, eps, lambda a: np.add.accumulate(a[..., ::-1], axis=-1)[..., -1])


def shuffled_rms_norm(x, weight, eps=1e-5):
    order = np.random.default_rng(0).permutation(x.shape[-1])
    return _over_root(x, weight, eps, lambda a: np.add.accumulate(a[..., order], axis=-1)[..., -1])


def lanes_rms_norm(x, weight, eps=1e-5):
    lanes = lambda a: functools.reduce(np.add, [a[..., i::4].sum(-1) for i in range(4)])  # noqa: E731
    return _over_root(x, weight, eps, lanes)


def blocked_rms_norm(x, weight, eps=1e-5):
    def total(a):
        parts = [a[..., i : i + 16].sum(-1) for i in range(0, a.shape[-1], 16)]
        return functools.reduce(np.add, parts)

    return _over_root(x, weight, eps, total)


def split_rms_norm(x, weight, eps=1e-5):
    """Two halves by two programs, whose sums are added by atomics in either order."""
    half = x.shape[-1] // 2
    return _over_root(x, weight, eps, lambda a: a[..., half:].sum(-1) + a[..., :half].sum(-1))


def dot_rms_norm(x, weight, eps=1e-5):
    n = x.dtype.type(x.shape[-1])
    mean = np.matmul(x[..., None, :], x[..., :, None])[..., 0] / n
    return x / np.sqrt(mean + x.dtype.type(eps)) * weight


def fused_rms_norm(x, weight, eps=1e-5):
    total = np.zeros(x.shape[:-1], x.dtype)
    for i in range(x.shape[-1]):
        wide = x[..., i].astype(np.float64)
        total = (wide * wide + total).astype(x.dtype)
    mean = (total / x.dtype.type(x.shape[-1]))[..., None]
    return x / np.sqrt(mean + x.dtype.type(eps)) * weight


def weight_first_rms_norm(x, weight, eps=1e-5):
    mean = np.square(x).mean(-1, keepdims=True)
    root = np.sqrt(mean + x.dtype.type(eps))
    return x * (x.dtype.type(1) / root * weight)


def inverse_length_rms_norm(x, weight, eps=1e-5):
    inverse = x.dtype.type(1) / x.dtype.type(x.shape[-1])
    mean = np.square(x).sum(-1, keepdims=True) * inverse
    return x / np.sqrt(mean + x.dtype.type(eps)) * weight


def compensated_rms_norm(x, weight, eps=1e-5):
    total = lost = np.zeros(x.shape[:-1], x.dtype)
    for i in range(x.shape[-1]):
        term = np.square(x[..., i]) - lost
        larger = total + term
        error = (larger - total) - term
        total, lost = larger, np.where(np.isfinite(error), error, 0).astype(x.dtype)
    mean = (total / x.dtype.type(x.shape[-1]))[..., None]
    return x / np.sqrt(mean + x.dtype.type(eps)) * weight


def float64_sum_rms_norm(x, weight, eps=1e-5):
    return _over_root(x, weight, eps, lambda a: a.sum(-1, dtype=np.float64).astype(x.dtype))


def float64_rms_norm(x, weight, eps=1e-5):
    return pairwise_rms_norm(x.astype(np.float64), weight.astype(np.float64), eps).astype(x.dtype)


def float32_inside_rms_norm(x, weight, eps=1e-5):
    return pairwise_rms_norm(x.astype(np.float32), weight.astype(np.float32), eps).astype(x.dtype)
