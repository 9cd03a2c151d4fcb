"""Right cross entropies: of the log-sum-exp, of shifted logits, online, in orders and blocks."""

import functools

import numpy as np


def _reduced(losses, target, reduction):
    used = target != -100
    losses = np.where(used, losses, 0)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / losses.dtype.type(used.sum())


def _at(x, target):
    return np.take_along_axis(x, np.expand_dims(target.clip(0), 1), 1)[:, 0]


def _shifted(x, target, reduction, total):
    """The log of a sum of exponentials, which are handed over with their axis last."""
    shifted = x - x.max(1, keepdims=True)
    sums = total(np.moveaxis(np.exp(shifted), 1, -1))
    return _reduced(np.log(sums) - _at(shifted, target), target, reduction)


def shifted_cross_entropy(x, target, reduction="mean"):
    return _shifted(x, target, reduction, lambda e: e.sum(-1))


def log_sum_exp_cross_entropy(x, target, reduction="mean"):
    m = x.max(1)
    total = m + np.log(np.exp(x - np.expand_dims(m, 1)).sum(1))
    return _reduced(total - _at(x, target), target, reduction)


def sequential_cross_entropy(x, target, reduction="mean"):
    return _shifted(x, target, reduction, lambda e: np.add.accumulate(e, axis=-1)[..., -1])


def reversed_cross_entropy(x, target, reduction="mean"):
    return _shifted(
        x, target, reduction, lambda e: np.add.accumulate(e[..., ::-1], axis=-1)[..., -1]
    )


def shuffled_cross_entropy(x, target, reduction="mean"):
    order = np.random.default_rng(0).permutation(x.shape[1])
    return _shifted(
        x, target, reduction, lambda e: np.add.accumulate(e[..., order], axis=-1)[..., -1]
    )


def lanes_cross_entropy(x, target, reduction="mean"):
    return _shifted(
        x, target, reduction,
        lambda e: functools.reduce(np.add, [e[..., i::4].sum(-1) for i in range(4)]),
    )  # fmt: skip


def blocked_cross_entropy(x, target, reduction="mean"):
    def total(e):
        parts = [e[..., i : i + 8].sum(-1) for i in range(0, e.shape[-1], 8)]
        return functools.reduce(np.add, parts)

    return _shifted(x, target, reduction, total)


def _online(x, target, reduction, size):
    m = np.full_like(x[:, 0], -np.inf)
    total = np.zeros_like(m)
    for i in range(0, x.shape[1], size):
        block = x[:, i : i + size]
        larger = np.maximum(m, block.max(1))
        still = np.where(m == -np.inf, 0, np.exp(m - larger)).astype(x.dtype)
        terms = np.exp(np.where(block == -np.inf, -np.inf, block - np.expand_dims(larger, 1)))
        total = total * still + terms.sum(1)
        m = larger
    return _reduced(np.log(total) + m - _at(x, target), target, reduction)


def online_cross_entropy(x, target, reduction="mean"):
    return _online(x, target, reduction, 1)


def flash_cross_entropy(x, target, reduction="mean"):
    return _online(x, target, reduction, 16)


def only_matrices_cross_entropy(x, target, reduction="mean"):
    if x.ndim != 2:
        raise NotImplementedError("a matrix only")
    if ((target != -100) & ((target < 0) | (target >= x.shape[1]))).any():
        raise IndexError("a class that is none")
    return shifted_cross_entropy(x, target, reduction)


def float64_sum_cross_entropy(x, target, reduction="mean"):
    return _shifted(x, target, reduction, lambda e: e.sum(-1, dtype=np.float64).astype(x.dtype))


def float64_cross_entropy(x, target, reduction="mean"):
    return np.asarray(shifted_cross_entropy(x.astype(np.float64), target, reduction), x.dtype)


def float32_inside_cross_entropy(x, target, reduction="mean"):
    return np.asarray(shifted_cross_entropy(x.astype(np.float32), target, reduction), x.dtype)
