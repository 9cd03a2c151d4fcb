"""Right variances: two passes in orders and blocks, Welford, Chan, shifted by the first number."""

import numpy as np
import sum as sums


def _two_pass(x, axis, ddof, total=lambda rows: rows.sum(-1)):
    rows = sums._rows(x, axis)
    n = rows.shape[-1]
    mean = total(rows) / x.dtype.type(n)
    return _divided(total(np.square(rows - mean[..., None])), n, ddof)


def _divided(squares, n, ddof):
    return squares / squares.dtype.type(max(n - ddof, 0))


def two_pass_var(x, axis=-1, ddof=0):
    return _two_pass(x, axis, ddof)


def sequential_var(x, axis=-1, ddof=0):
    return _two_pass(x, axis, ddof, sums.sequential_sum)


def reversed_var(x, axis=-1, ddof=0):
    return _two_pass(x, axis, ddof, sums.reversed_sum)


def shuffled_var(x, axis=-1, ddof=0):
    return _two_pass(x, axis, ddof, sums.shuffled_sum)


def lanes_var(x, axis=-1, ddof=0):
    return _two_pass(x, axis, ddof, sums.lanes_sum)


def blocked_var(x, axis=-1, ddof=0):
    return _two_pass(x, axis, ddof, sums.blocked_sum)


def tree_var(x, axis=-1, ddof=0):
    return _two_pass(x, axis, ddof, sums.tree_sum)


def two_stage_var(x, axis=-1, ddof=0):
    return _two_pass(x, axis, ddof, sums.two_stage_sum)


def multiplied_var(x, axis=-1, ddof=0):
    rows, kind = sums._rows(x, axis), x.dtype.type
    n, left = rows.shape[-1], rows.shape[-1] - ddof
    mean = rows.sum(-1, keepdims=True) * kind(1 / n if n else np.nan)
    return np.square(rows - mean).sum(-1) * kind(1 / left if left > 0 else np.inf)


def corrected_var(x, axis=-1, ddof=0):
    """What the rounded mean leaves is subtracted."""
    rows = sums._rows(x, axis)
    n = rows.shape[-1]
    d = rows - rows.sum(-1, keepdims=True) / x.dtype.type(n)
    left = d.sum(-1)
    return _divided(np.square(d).sum(-1) - left * left / x.dtype.type(n), n, ddof)


def welford_var(x, axis=-1, ddof=0):
    rows, kind = sums._rows(x, axis), x.dtype.type
    mean = squares = np.zeros(rows.shape[:-1], x.dtype)
    for i in range(rows.shape[-1]):
        step = rows[..., i] - mean
        mean = mean + step / kind(i + 1)
        squares = squares + step * (rows[..., i] - mean)
    return _divided(squares if rows.shape[-1] else squares * np.nan, rows.shape[-1], ddof)


def chan_var(x, axis=-1, ddof=0):
    rows, kind, count = sums._rows(x, axis), x.dtype.type, 0
    mean = squares = np.zeros(rows.shape[:-1], x.dtype)
    for i in range(0, rows.shape[-1], 8):
        part = rows[..., i : i + 8]
        m = part.shape[-1]
        of_part = part.mean(-1)
        within = np.square(part - of_part[..., None]).sum(-1)
        step, joined = of_part - mean, count + m
        mean = mean + step * kind(m / joined)
        squares = squares + within + step * step * kind(count * m / joined)
        count = joined
    return _divided(squares if count else squares * np.nan, count, ddof)


def float64_var(x, axis=-1, ddof=0):
    return _two_pass(x.astype(np.float64), axis, ddof).astype(x.dtype)


def float32_inside_var(x, axis=-1, ddof=0):
    return _two_pass(x.astype(np.float32), axis, ddof).astype(x.dtype)
