"""The fallback of `float64.normalise_rows`: the same operations in NumPy, on all rows at once.

Sums go through the same lanes in the same order. `arithmetic.small` decides when a fallback runs.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.array_decisions import cut
from refkernels.arithmetic.bits import OUTWARD
from refkernels.arithmetic.transformations import multiply_add, two_sum
from refkernels.kernels.rows import lanes
from refkernels.kernels.rows.float64 import CONSTANT, NEXT_TIER, NOT_FINITE, REGULAR, SLACK
from refkernels.kernels.rows.lanes import U
from refkernels.kernels.rows.passes import LANES
from refkernels.kernels.rows.screening import Screen

Array = npt.NDArray[Any]


def steps(n: int) -> int:
    """How many steps the sums of rows of n elements take."""
    return 2 * -(-n // LANES)


def normalise_rows(
    x: Array, weight: Array, bias: Array, eps: float, screen: Screen, out: tuple[Array, ...]
) -> None:
    """Fills `out` for all rows of x as the kernel does."""
    rows, hi, radius, top, doubts = out
    with np.errstate(all="ignore"):
        d = _fill_statistics(x.astype(np.float64), eps, rows)
        r, regular = rows["r"], rows["state"] == REGULAR
        constant = (rows["state"] == CONSTANT) & (r < np.inf)
        y = multiply_add(d * r[:, None], weight, bias)
        otherwise = np.where(constant[:, None], bias + 0.0, np.nan)
        hi[:] = np.where(regular[:, None], y, otherwise)
        largest = np.where(constant, np.abs(bias).max(), 0.0)
        top[:] = np.where(regular, np.fmax.reduce(np.abs(y), axis=1), largest)
        spread = rows["d_error"] + rows["largest"] * (rows["r_error"] + 3.1 * U)
        widest = np.abs(weight).max()
        radius[:] = np.where(regular, SLACK * (widest * r * spread + U * top), 0.0)
        doubts[:] = _doubtful(hi, radius[:, None], screen)


def _fill_statistics(x: Array, eps: float, out: Array) -> Array:
    """`float64._fill_statistics` of all rows; their deviations."""
    n, kappa = x.shape[1], lanes.row_kappa.py_func(x.shape[1])
    high, low = _sum_in_lanes(x)
    c = high / n
    delta = (multiply_add(-c, np.full_like(c, n), high) + low) / n
    d0 = x - c[:, None]
    q = _sum_in_lanes(d0 * d0)[0] / n
    top = np.fmax.reduce(np.abs(d0), axis=1, initial=0.0)
    spread, size = np.sqrt(q), np.abs(delta)
    error = kappa * (np.abs(c) + size + spread) + 2.05 * U * size
    error[top == 0.0] = 0.0
    variance = q - delta * delta
    v = variance + eps
    variance_error = (5.2 * U + kappa) * q + 2.0 * size * error + error * error
    variance_error += U * delta * delta + U * np.abs(variance)
    out["c"], out["delta"], out["spread"], out["v"] = c, delta, spread, v
    out["mean_error"], out["d_error"] = SLACK * error, SLACK * (error + 1.01 * U * size)
    out["largest"] = top + size
    positive = v > 0.0
    v_error = SLACK * (variance_error / v + U)
    out["v_error"] = np.where(positive, v_error, 0.0)
    out["r"] = np.where(positive, 1.0 / np.sqrt(v), np.where(v == 0.0, np.inf, np.nan))
    out["r_error"] = np.where(positive, 0.51 * v_error + 2.05 * U, 0.0)
    varying = np.where(positive & (v_error < 2.0**-30), REGULAR, NEXT_TIER)
    finite = np.where(top == 0.0, CONSTANT, varying)
    out["state"] = np.where(np.isfinite(c), finite, NOT_FINITE)
    deviations: Array = d0 - delta[:, None]
    return deviations


def _sum_in_lanes(terms: Array) -> tuple[Array, Array]:
    """(hi, lo) of each row: the compensated sum of a row pass."""
    s, c = np.zeros((2, len(terms), LANES))
    for start in range(0, terms.shape[1], LANES):
        part = terms[:, start : start + LANES]
        lane = slice(part.shape[1])
        s[:, lane], e = two_sum(s[:, lane], part)
        c[:, lane] += e
    while s.shape[1] > 1:
        half = s.shape[1] // 2
        s, e = two_sum(s[:, :half], s[:, half:])
        c = (c[:, :half] + c[:, half:]) + e
    return two_sum(s[:, 0], c[:, 0])


def _doubtful(hi: Array, radius: Array, screen: Screen) -> Array:
    """`screening.doubtful` of all rows."""
    kind, p, least, most, narrow = screen
    h = np.abs(hi)
    if kind == 0:
        return np.zeros(len(hi))
    if kind == 2:
        open_ = ~(radius <= narrow * (h - radius))
    else:
        half, mask = cut(p)
        low = (h - radius).view(np.int64) + (half - OUTWARD)
        high = (h + radius).view(np.int64) + (half + OUTWARD)
        open_ = ~((h > least) & (h < most) & (((low ^ high) & mask) == 0))
    counts: Array = np.where(radius[:, 0] == 0.0, 0, open_.sum(axis=1))
    return counts
