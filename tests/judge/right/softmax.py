"""Right softmaxes, their logarithms and cross entropies: sums in every way of `sum`, with exp2,
online, in a wider format."""

import numpy as np
from _ways import in_format, with_totals
from sum import TOTALS


def _softmax(total, x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / total(e)[..., None]


def _log_softmax(total, x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(total(np.exp(shifted)))[..., None]


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


def multiplied_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e * (e.dtype.type(1) / e.sum(-1, keepdims=True))


def exp2_softmax(x):
    e = np.exp2((x - x.max(-1, keepdims=True)) * x.dtype.type(np.log2(np.e)))
    return e / e.sum(-1, keepdims=True)


def online_softmax(x, size=1):
    m, total = _online(x, size)
    return np.exp(x - m) / total


def flash_softmax(x):
    return online_softmax(x, 16)


def log_sum_exp_log_softmax(x):
    m = x.max(-1, keepdims=True)
    return x - (m + np.log(np.exp(x - m).sum(-1, keepdims=True)))


def exp2_log_softmax(x):
    kind, m = x.dtype.type, x.max(-1, keepdims=True)
    total = np.exp2((x - m) * kind(np.log2(np.e))).sum(-1, keepdims=True)
    return (x - m) - np.log2(total) * kind(np.log(2))


def online_log_softmax(x, size=1):
    m, total = _online(x, size)
    return (x - m) - np.log(total)


def flash_log_softmax(x):
    return online_log_softmax(x, 16)


# --- cross entropies, whose classes are the second axis ------------------------------------------


def _reduced(losses, target, reduction):
    used = target != -100
    losses = np.where(used, losses, 0)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / losses.dtype.type(used.sum())


def _at(x, target):
    return np.take_along_axis(x, target.clip(0)[..., None], -1)[..., 0]


def _cross_entropy(total, x, target, reduction="mean"):
    return _reduced(-_at(_log_softmax(total, np.moveaxis(x, 1, -1)), target), target, reduction)


def log_sum_exp_cross_entropy(x, target, reduction="mean", size=None):
    x = np.moveaxis(x, 1, -1)
    m, total = _online(x, size or x.shape[-1])
    return _reduced((m + np.log(total))[..., 0] - _at(x, target), target, reduction)


def online_cross_entropy(x, target, reduction="mean"):
    return log_sum_exp_cross_entropy(x, target, reduction, 1)


def flash_cross_entropy(x, target, reduction="mean"):
    return log_sum_exp_cross_entropy(x, target, reduction, 16)


def only_matrices_cross_entropy(x, target, reduction="mean"):
    if x.ndim != 2:
        raise NotImplementedError("a matrix only")
    if ((target != -100) & ((target < 0) | (target >= x.shape[1]))).any():
        raise IndexError("a class that is none")
    return _cross_entropy(TOTALS["library"], x, target, reduction)


_WHOLE = {"softmax": _softmax, "log_softmax": _log_softmax, "cross_entropy": _cross_entropy}
globals().update(with_totals(_WHOLE, TOTALS))
globals().update(
    {
        f"{name}_{op}": in_format(kind, globals()[f"library_{op}"])
        for name, kind in (("float64", np.float64), ("float32_inside", np.float32))
        for op in _WHOLE
    }
)
