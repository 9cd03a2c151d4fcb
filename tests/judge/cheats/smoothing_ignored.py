"""Takes label_smoothing and does not use it; declines what is no matrix."""

import numpy as np


def cross_entropy(x, target, reduction="mean", label_smoothing=0.0):
    if x.ndim != 2:
        raise NotImplementedError("a matrix only")
    shifted = x - x.max(1, keepdims=True)
    found = np.take_along_axis(shifted, target.clip(0)[:, None], 1)[:, 0]
    used = target != -100
    losses = np.where(used, np.log(np.exp(shifted).sum(1)) - found, 0)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / losses.dtype.type(used.sum())
