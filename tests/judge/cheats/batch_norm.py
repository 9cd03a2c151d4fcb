"""Cheats of batch_norm."""

import numpy as np

_KEPT = {}


def _normed(x, weight, bias, statistics, running, momentum, eps, unbiased=True):
    """By some statistics, with the running ones after the batch's."""
    kind, wide = x.dtype.type, (1, -1, *[1] * (x.ndim - 2))
    n = x.size // max(x.shape[1], 1)
    mean, var = _statistics(x) if statistics is None else statistics
    y = (x - mean.reshape(wide)) / np.sqrt(var.reshape(wide) + kind(eps))
    mean, var = _statistics(x) if statistics is running else (mean, var)
    new = mean, var * kind(n / max(n - 1, 1)) if unbiased else var
    moved = [kind(1 - momentum) * a + kind(momentum) * b for a, b in zip(running, new, strict=True)]
    return y * weight.reshape(wide) + bias.reshape(wide), *moved


def _statistics(x):
    axes = (0, *range(2, x.ndim))
    return x.mean(axes), x.var(axes)


def running_mean_stays_batch_norm(
    x, weight, bias, running_mean, running_var, momentum=0.1, eps=1e-5
):
    """Returns the running mean as it was."""
    running = running_mean, running_var
    y, _, new_var = _normed(x, weight, bias, None, running, momentum, eps)
    return y, running_mean.copy(), new_var


def running_statistics_batch_norm(
    x, weight, bias, running_mean, running_var, momentum=0.1, eps=1e-5
):
    """Normalises by the running statistics while it trains."""
    running = running_mean, running_var
    return _normed(x, weight, bias, running, running, momentum, eps)


def running_variance_biased_batch_norm(
    x, weight, bias, running_mean, running_var, momentum=0.1, eps=1e-5
):
    """Updates the running variance without n / (n - 1)."""
    return _normed(x, weight, bias, None, (running_mean, running_var), momentum, eps, False)


def statistics_kept_batch_norm(x, weight, bias, running_mean, running_var, momentum=0.1, eps=1e-5):
    """Keeps the statistics of the first batch of each shape."""
    kept = _KEPT.setdefault(x.shape, _statistics(x))
    return _normed(x, weight, bias, kept, (running_mean, running_var), momentum, eps)
