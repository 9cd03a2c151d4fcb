"""Normalises by the running statistics while it trains."""

import numpy as np


def batch_norm(x, weight, bias, running_mean, running_var, momentum=0.1, eps=1e-5):
    kind, wide = x.dtype.type, (1, -1, *[1] * (x.ndim - 2))
    axes, n = (0, *range(2, x.ndim)), x.size // max(x.shape[1], 1)
    mean, var = x.mean(axes), x.var(axes)
    new_mean = kind(1 - momentum) * running_mean + kind(momentum) * mean
    new_var = kind(1 - momentum) * running_var + kind(momentum) * (var * kind(n / max(n - 1, 1)))
    centred = x - running_mean.reshape(wide)
    y = centred / np.sqrt(running_var.reshape(wide) + kind(eps)) * weight.reshape(
        wide
    ) + bias.reshape(wide)
    return y, new_mean, new_var
