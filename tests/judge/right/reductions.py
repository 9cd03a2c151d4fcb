"""Right reductions: means, norms and logarithms of sums by every way
of `sum`, products, maxima and running sums in orders, blocks and trees."""

import numpy as np
import sum as sums
from _ways import with_totals


def _mean(total, x, axis=-1):
    rows = sums._rows(x, axis)
    return total(rows) / x.dtype.type(rows.shape[-1])


def multiplied_mean(x, axis=-1):
    rows = sums._rows(x, axis)
    return rows.sum(-1) * x.dtype.type(1 / rows.shape[-1] if rows.shape[-1] else np.nan)


def _norm(total, x, axis=-1):
    return sums._scaled_norm(total, sums._rows(x, axis))


def _cosine(total, x, other, axis=-1, eps=1e-8):
    k = x.dtype.type(eps)
    lengths = [np.maximum(_norm(total, a, axis), k) for a in (x, other)]
    product = total(np.moveaxis(x * other, axis, -1))
    return product / lengths[0] / lengths[1]


def _distances(total, a, b, p=2):
    d = a[..., :, None, :] - b[..., None, :, :]
    return total(np.abs(d)) if p == 1 else _norm(total, d)


def _logsumexp(total, x, axis=-1):
    rows = sums._rows(x, axis)
    m = rows.max(-1, keepdims=True)
    shifted = np.where(rows == m, 0, rows - m).astype(x.dtype)
    return (m[..., 0] + np.log(total(np.exp(shifted)))).astype(x.dtype)


# --- products and maxima ------------------------------------------------------------------------


def _of_rows(fold):
    return lambda x, axis=-1: fold(sums._rows(x, axis))


def _folded(step, start):
    return {name: _of_rows(fold) for name, fold in sums.folds(step, start).items()}


# --- running sums -------------------------------------------------------------------------------


def _in_pieces(size, inner=lambda part: np.add.accumulate(part, axis=-1)):
    """Running sums of blocks, with the sum of the blocks before them."""

    def scan(rows):
        y, before = np.empty_like(rows), np.zeros(rows.shape[:-1], rows.dtype)
        for i in range(0, rows.shape[-1], size):
            y[..., i : i + size] = inner(rows[..., i : i + size]) + before[..., None]
            before = y[..., min(i + size, rows.shape[-1]) - 1]
        return y

    return scan


def _doubling(rows):
    """Hillis and Steele's scan."""
    y, step = rows.copy(), 1
    while step < rows.shape[-1]:
        y = np.concatenate([y[..., :step], y[..., step:] + y[..., :-step]], axis=-1)
        step *= 2
    return y


def _halving(rows):
    """Blelloch's scan, of pairs."""
    n = rows.shape[-1]
    if n < 2:
        return rows.copy()
    odd = _halving(rows[..., : n // 2 * 2 : 2] + rows[..., 1 : n // 2 * 2 : 2])
    y = np.empty_like(rows)
    y[..., 1::2] = odd
    y[..., 0] = rows[..., 0]
    y[..., 2::2] = odd[..., : (n - 1) // 2] + rows[..., 2::2]
    return y


def _compensated(rows):
    y, total = np.empty_like(rows), np.zeros(rows.shape[:-1], rows.dtype)
    lost = total
    for i in range(rows.shape[-1]):
        term = rows[..., i] - lost
        larger = total + term
        error = (larger - total) - term
        total, lost = larger, np.where(np.isfinite(error), error, 0).astype(rows.dtype)
        y[..., i] = total
    return y


def _loop(rows):
    y, total = np.empty_like(rows), np.zeros(rows.shape[:-1], rows.dtype)
    for i in range(rows.shape[-1]):
        total = total + rows[..., i]
        y[..., i] = total
    return y


_SCANS = {
    "library": lambda rows: np.cumsum(rows, axis=-1), "loop": _loop, "doubling": _doubling,
    "halving": _halving, "blocks_of_7": _in_pieces(7), "blocks_of_64": _in_pieces(64),
    "doubling_in_blocks": _in_pieces(32, _doubling), "halving_in_blocks": _in_pieces(16, _halving),
    "blocks_of_500": _in_pieces(500), "compensated": _compensated,
    "compensated_in_blocks": _in_pieces(128, _compensated),
    "float64": lambda rows: np.cumsum(rows, axis=-1, dtype=np.float64).astype(rows.dtype),
}  # fmt: skip


def _along(scan):
    return lambda x, axis=-1: np.moveaxis(scan(np.moveaxis(x, axis, -1)), -1, axis)


globals().update(
    {f"{name}_prod": fold for name, fold in _folded(np.multiply, 1).items()}
    | {f"{name}_max": fold for name, fold in _folded(np.maximum, -np.inf).items()}
    | {f"{name}_cumsum": _along(scan) for name, scan in _SCANS.items()}
    | with_totals(
        {
            "mean": _mean,
            "norm": _norm,
            "logsumexp": _logsumexp,
            "cosine_similarity": _cosine,
            "cdist": _distances,
        },
        sums.TOTALS,
    )
)
