"""Losses, by their definitions."""

from typing import Any

import numpy as np
from hand_numbers import Numbers, each, exp, log, number, softplus
from hand_rows import log_softmax, logsumexp
from mpmath import mp


def reduced(losses: Numbers, reduction: str, divisor: Any = None) -> Any:
    if reduction == "none":
        return losses
    divisor = losses.size if divisor is None else divisor
    return losses.sum() if reduction == "sum" else losses.sum() / divisor


def picked(x: Numbers, target: Any) -> Any:
    return np.take_along_axis(x, target[..., None], -1)[..., 0]


def labels(x: Numbers, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any, Any]:
    """Each row's label; 1, or 0 where it is ignored; the label's weight, or 0. A label that is no
    class is NaN in the second: its row has no loss. It has none of the weights either."""
    kept, is_class = target != ignore_index, (target >= 0) & (target < x.shape[-1])
    label = np.where(is_class, target, 0)
    counts = np.where(kept, np.where(is_class, mp.mpf(1), mp.nan), mp.mpf(0))
    own = kept * mp.mpf(1) if weight is None else counts * weight[label]
    return label, counts, own


def cross_entropy(
    x: Numbers, target: Any, weight: Any = None, reduction: str = "mean", ignore_index: int = -100,
    label_smoothing: float = 0.0, z_loss: float = 0.0, softcap: float | None = None,
) -> Any:  # fmt: skip
    label, counts, w = labels(x, target, weight, ignore_index)
    x = x if softcap is None else each(mp.tanh)(x / number(softcap)) * number(softcap)
    logs, e = log_softmax(x), number(label_smoothing)
    every = logs.sum(-1) if weight is None else (weight * logs).sum(-1)
    losses = -w * picked(logs, label) * (1 - e) - every * (e / x.shape[-1])
    losses = losses + number(z_loss) * logsumexp(x) ** 2 if z_loss else losses
    return reduced(counts * losses, reduction, w.sum())


def nll(
    x: Numbers, target: Any, weight: Any = None, reduction: str = "mean", ignore_index: int = -100
) -> Any:  # fmt: skip
    label, counts, w = labels(x, target, weight, ignore_index)
    return reduced(-counts * w * picked(x, label), reduction, w.sum())


def soft_cross_entropy(
    x: Numbers, target: Numbers, weight: Any = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    e = number(label_smoothing)
    q = target * (1 - e) + e / x.shape[-1]
    q = q if weight is None else q * weight
    return reduced(-(q * log_softmax(x)).sum(-1), reduction)


def masked_lm_loss(
    x: Numbers, target: Any, weights: Numbers, reduction: str = "mean", eps: float = 1e-5
) -> Any:  # fmt: skip
    losses = -weights * picked(log_softmax(x), target)
    return reduced(losses, reduction, weights.sum() + number(eps))


def ctc_loss(
    x: Numbers, target: Any, x_lengths: Any = None, target_lengths: Any = None, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """By the probabilities of prefixes that end in a blank, and in their last label."""
    p = exp(log_softmax(x))
    losses, sizes = np.full(x.shape[:-2], mp.mpf(0)), np.ones(x.shape[:-2], int)
    for row in np.ndindex(losses.shape):
        labels = target[row][: None if target_lengths is None else target_lengths[row]]
        after_blank, after_label = (
            [mp.mpf(n == 0 and k) for n in range(len(labels) + 1)] for k in (1, 0)
        )
        for step in p[row][: None if x_lengths is None else x_lengths[row]]:
            blanks = [(a + b) * step[blank] for a, b in zip(after_blank, after_label, strict=True)]
            ends = [mp.mpf(0)]
            for n, label in enumerate(labels):
                before = after_blank[n] + (
                    after_label[n] if n == 0 or labels[n - 1] != label else 0
                )
                ends.append((after_label[n + 1] + before) * step[label])
            after_blank, after_label = blanks, ends
        total = after_blank[-1] + after_label[-1]
        losses[row] = mp.mpf(0) if total == 0 and zero_infinity else -mp.log(total)
        sizes[row] = max(len(labels), 1)
    return reduced(losses / sizes if reduction == "mean" else losses, reduction)


def huber(x: Numbers, target: Numbers, reduction: str = "mean", delta: float = 1.0) -> Any:
    d, limit = abs(x - target), number(delta)
    return reduced(np.where(d < limit, d * d / 2, (d - limit / 2) * limit), reduction)


def smooth_l1(x: Numbers, target: Numbers, reduction: str = "mean", beta: float = 1.0) -> Any:
    d, limit = abs(x - target), number(beta)
    return reduced(np.where(d < limit, d * d / (2 * limit), d - limit / 2), reduction)


def kl_div(
    x: Numbers, target: Numbers, reduction: str = "mean", log_target: bool = False
) -> Any:  # fmt: skip
    if log_target:
        losses = exp(target) * (target - x)
    else:
        some = target > 0
        losses = np.where(some, target * (log(np.where(some, target, mp.mpf(1))) - x), mp.mpf(0))
    if reduction == "batchmean":
        return losses.sum() / len(losses)
    return reduced(losses, reduction)


def bce_with_logits(
    x: Numbers, target: Numbers, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Any:  # fmt: skip
    p = mp.mpf(1) if pos_weight is None else pos_weight
    losses = (1 - target) * softplus(x) + p * target * softplus(-x)
    return reduced(losses if weight is None else losses * weight, reduction)


LOSSES = {
    "cross_entropy": cross_entropy,
    "ctc_loss": ctc_loss,
    "linear_cross_entropy": lambda x, weight, target, **options: cross_entropy(
        x @ weight.T, target, **options
    ),
    "selective_log_softmax": lambda x, target, temperature=1.0: picked(
        log_softmax(x / number(temperature)), target
    ),
    "nll": nll,
    "soft_cross_entropy": soft_cross_entropy,
    "masked_lm_loss": masked_lm_loss,
    "mse": lambda x, target, reduction="mean": reduced((x - target) ** 2, reduction),
    "l1": lambda x, target, reduction="mean": reduced(abs(x - target), reduction),
    "huber": huber,
    "smooth_l1": smooth_l1,
    "kl_div": kl_div,
    "bce_with_logits": bce_with_logits,
}
