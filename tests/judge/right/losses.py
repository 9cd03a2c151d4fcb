"""Right losses: the terms of each element or row, added in every way of `sum`."""

import numpy as np
from _ways import in_kind as _k
from _ways import with_totals
from softmax import _log_softmax
from sum import TOTALS


def _reduced(total, terms, reduction, count):
    if reduction == "none":
        return terms
    whole = total(terms.reshape(-1))
    return whole if reduction == "sum" else whole / terms.dtype.type(count)


def _of_pairs(term):
    def loss(total, x, target, reduction="mean", **params):
        count = (len(x) if x.ndim else 1) if reduction == "batchmean" else x.size
        return _reduced(total, term(x, target, **params), reduction, count)

    return loss


_squares = _of_pairs(lambda x, target: np.square(x - target))
_sizes = _of_pairs(lambda x, target: np.abs(x - target))


@_of_pairs
def _huber(x, target, delta=1.0):
    d, k = np.abs(x - target), _k(x, delta)
    return np.where(d < k, _k(x, 0.5) * d * d, k * (d - _k(x, 0.5 * delta)))


@_of_pairs
def _smooth(x, target, beta=1.0):
    d, k = np.abs(x - target), _k(x, beta)
    return np.where(d < k, _k(x, 0.5) * d * d / k, d - _k(x, 0.5 * beta))


@_of_pairs
def _divergence(x, target, log_target=False):
    if log_target:
        return np.exp(target) * (target - x)
    return np.where(target != 0, target * (np.log(target) - x), target)


def _mse(total, x, target, reduction="mean"):
    return _squares(total, x, target, reduction)


def _l1(total, x, target, reduction="mean"):
    return _sizes(total, x, target, reduction)


def _huber_loss(total, x, target, reduction="mean", delta=1.0):
    return _huber(total, x, target, reduction, delta=delta)


def _smooth_l1(total, x, target, reduction="mean", beta=1.0):
    return _smooth(total, x, target, reduction, beta=beta)


def _kl_div(total, x, target, reduction="mean", log_target=False):
    return _divergence(total, x, target, reduction, log_target=log_target)


def _bce(total, x, target, weight=None, pos_weight=None, reduction="mean"):
    slack = np.log1p(np.exp(-np.abs(x)))
    positive = target if pos_weight is None else target * pos_weight
    terms = (1 - target) * (np.maximum(x, 0) + slack) + positive * (np.maximum(-x, 0) + slack)
    return _reduced(total, terms if weight is None else terms * weight, reduction, x.size)


# --- of classes ---------------------------------------------------------------------------------


def _at(x, target):
    return np.take_along_axis(x, target.clip(0, x.shape[-1] - 1)[..., None], -1)[..., 0]


def _selected(total, x, target, temperature=1.0):
    return _at(_log_softmax(total, x / _k(x, temperature)), target)


def _nll(total, x, target, weight=None, reduction="mean", ignore_index=-100):
    kept = target != ignore_index
    own = np.ones(target.shape, x.dtype) if weight is None else weight[target.clip(0)]
    terms = np.where(kept, -_at(x, target) * own, 0).astype(x.dtype)
    if reduction != "mean":
        return _reduced(total, terms, reduction, 1)
    counted = np.where(kept, own, 0).astype(x.dtype)
    return total(terms.reshape(-1)) / total(counted.reshape(-1))


def _soft(total, x, target, weight=None, reduction="mean", label_smoothing=0.0):
    n = x.shape[-1]
    q = _k(x, 1 - label_smoothing) * target + _k(x, label_smoothing / n)
    q = (target if not label_smoothing else q) * (1 if weight is None else weight)
    terms = -total(q * _log_softmax(total, x))
    return _reduced(total, terms, reduction, terms.size)


def _masked(total, x, target, weights, reduction="mean", eps=1e-5):
    terms = -weights * _at(_log_softmax(total, x), target)
    if reduction != "mean":
        return _reduced(total, terms, reduction, 1)
    return total(terms.reshape(-1)) / (total(weights.reshape(-1)) + _k(x, eps))


globals().update(
    with_totals(
        {
            "mse": _mse, "l1": _l1, "huber": _huber_loss, "smooth_l1": _smooth_l1,
            "kl_div": _kl_div, "bce_with_logits": _bce, "nll": _nll, "soft_cross_entropy": _soft,
            "masked_lm_loss": _masked, "selective_log_softmax": _selected,
        },
        TOTALS,
    )
)  # fmt: skip
