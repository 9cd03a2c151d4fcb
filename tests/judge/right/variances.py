"""Right variances: two passes in orders and blocks, Welford, Chan, shifted by the first number."""

import numpy as np
import sum as sums
from _ways import with_totals


def _two_pass(total, x, axis=-1, ddof=0):
    rows = sums._rows(x, axis)
    n = rows.shape[-1]
    mean = total(rows) / x.dtype.type(n)
    return _divided(total(np.square(rows - mean[..., None])), n, ddof)


def _divided(squares, n, ddof):
    return squares / squares.dtype.type(max(n - ddof, 0))


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
    rows = sums._rows(x, axis)
    squares, n = sums._chan(rows)[1], rows.shape[-1]
    return _divided(squares if n else squares * np.nan, n, ddof)


globals().update(with_totals({"var": _two_pass}, sums.TOTALS))
