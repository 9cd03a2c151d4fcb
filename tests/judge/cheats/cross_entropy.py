"""Cheats of cross_entropy."""

import numpy as np

_KEPT = {}


def _loss(x, target, reduction):
    shifted = x - x.max(1, keepdims=True)
    found = np.take_along_axis(shifted, np.expand_dims(target.clip(0), 1), 1)[:, 0]
    used = target != -100
    losses = np.where(used, np.log(np.exp(shifted).sum(1)) - found, 0)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / losses.dtype.type(used.sum())


def smoothing_ignored_cross_entropy(x, target, reduction="mean", label_smoothing=0.0):
    """Takes label_smoothing and does not use it; declines what is no matrix."""
    if x.ndim != 2:
        raise NotImplementedError("a matrix only")
    return _loss(x, target, reduction)


def targets_kept_cross_entropy(x, target, reduction="mean"):
    """Keeps the classes of its first call of a shape."""
    return _loss(x, _KEPT.setdefault(target.shape, target.copy()), reduction)
