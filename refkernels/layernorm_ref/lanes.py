"""Compensated sums in lanes: what the float64 tier adds up, in an order that vectorises.

Element j of a row goes to lane j mod LANES. A lane holds s, the running sum, and c, the plain sum
of the errors that two_sum reports; then lanes are added in halves, the same way. Nothing depends
on threads, and no fastmath is needed: neighbouring lanes are neighbours in memory.

Error. two_sum is exact, so sum w = s + (sum of all reported errors e) for terms w, A = sum|w|.
Every term takes part in at most K = ceil(n / LANES) + 7 additions (7 covers the 6 halvings), and
|e| <= u |s| <= 1.001 u (sum of |w| in s), so sum|e| <= 1.001 K u A. c passes each e through at most
2K additions, whose rounding errors add up to 2.01 K u * 1.001 K u A. With (hi, lo) = two_sum(s, c):
    |hi + lo - sum w| <= kappa A,   kappa = 2.1 K^2 u^2     (K u < 2^-20).
This is Sum2 of Ogita, Rump and Oishi (2005), doi:10.1137/030601818, in LANES interleaved sums.

The scratch of a row is one flat array, group g of lanes at [g * LANES, (g + 1) * LANES): constant
distances let the compiler see that lanes do not overlap.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.fma import fma
from refkernels.arithmetic.jit import njit

U = 2.0**-53
LANES = 64


@njit
def kappa(additions: int) -> float:
    """The relative error of a compensated sum whose terms see so many additions at most."""
    return 2.1 * float(additions) ** 2 * U * U


@njit
def additions(n: int) -> int:
    """K for a row of n elements."""
    return (n + LANES - 1) // LANES + 7


@njit
def fold(s: Any, c: Any, lanes: int) -> Any:
    """(hi, lo) of the first `lanes` lanes, which are overwritten."""
    count = lanes
    while count > 1:
        half = (count + 1) // 2
        for k in range(count - half):
            s[k], e = two_sum(s[k], s[half + k])
            c[k] = (c[k] + c[half + k]) + e
        count = half
    return two_sum(s[0], c[0])


@njit
def largest(values: Any) -> float:
    """The maximum of some numbers >= 0."""
    top = 0.0
    for value in values:
        top = max(top, value)
    return top


@njit
def row_mean(row: Any, scratch: Any) -> Any:
    """The mean of a row as c + delta, c its float64. With (hi, lo) the compensated sum, the
    remainder hi - c n of a division is a float64, and only two operations round: |c + delta - mean|
    <= kappa mean|x| + 2.05 u |delta|. In a constant row of float32 every sum k x is exact while
    n < 2^29, so that c is the common value and delta 0."""
    lane = scratch[: 2 * LANES]
    lane[:] = 0.0
    for start in range(0, row.size, LANES):
        piece = row[start : start + LANES]
        for k in range(piece.size):
            s, e = two_sum(lane[k], np.float64(piece[k]))
            lane[k] = s
            lane[LANES + k] += e
    hi, lo = fold(lane[:LANES], lane[LANES:], min(row.size, LANES))
    n = np.float64(row.size)
    c = hi / n
    return c, (fma(-c, n, hi) + lo) / n


@njit
def deviation_squares(row: Any, c: float, delta: float, scratch: Any, deviations: Any) -> Any:
    """The compensated sum of fl(d0^2), d0 = fl(x - c), as its high part, and max|d0|; d = fl(d0 -
    delta) into `deviations`."""
    lane = scratch[: 3 * LANES]
    lane[:] = 0.0
    for start in range(0, row.size, LANES):
        piece, kept = row[start : start + LANES], deviations[start : start + LANES]
        for k in range(piece.size):
            d = np.float64(piece[k]) - c
            kept[k] = d - delta
            s, e = two_sum(lane[k], d * d)
            lane[k] = s
            lane[LANES + k] += e
            size = abs(d)
            top = lane[2 * LANES + k]
            lane[2 * LANES + k] = size if size > top else top
    hi, _ = fold(lane[:LANES], lane[LANES : 2 * LANES], min(row.size, LANES))
    return hi, largest(lane[2 * LANES :])


@njit
def projection_sums(row: Any, dy: Any, weight: Any, scratch: Any) -> Any:
    """With t = fl(dy g), and a row of deviations d: compensated sums of t and of fl(t d), each as
    its high part, the plain sum of t^2, max|t|, and max|t - t_0| (0 only where t is constant)."""
    lane = scratch[: 7 * LANES]
    lane[:] = 0.0
    first = np.float64(dy[0]) * weight[0]
    for start in range(0, row.size, LANES):
        piece, grad = row[start : start + LANES], dy[start : start + LANES]
        factor = weight[start : start + LANES]
        for k in range(piece.size):
            t = np.float64(grad[k]) * factor[k]
            d = piece[k]
            s, e = two_sum(lane[k], t)
            lane[k] = s
            lane[LANES + k] += e
            s, e = two_sum(lane[2 * LANES + k], t * d)
            lane[2 * LANES + k] = s
            lane[3 * LANES + k] += e
            lane[4 * LANES + k] += t * t
            size = abs(t)
            top = lane[5 * LANES + k]
            lane[5 * LANES + k] = size if size > top else top
            size = abs(t - first)
            top = lane[6 * LANES + k]
            lane[6 * LANES + k] = size if size > top else top
    used = min(row.size, LANES)
    along_one, _ = fold(lane[:LANES], lane[LANES : 2 * LANES], used)
    along_x, _ = fold(lane[2 * LANES : 3 * LANES], lane[3 * LANES : 4 * LANES], used)
    squares = 0.0
    for value in lane[4 * LANES : 5 * LANES]:
        squares += value
    top = largest(lane[5 * LANES : 6 * LANES])
    return along_one, along_x, squares, top, largest(lane[6 * LANES : 7 * LANES])


@njit
def write_normalised(row: Any, weight: Any, bias: Any, r: float, hi: Any, scratch: Any) -> float:
    """hi = fma(fl(d r), g, b) for a row of deviations d; max|hi|."""
    lane = scratch[:LANES]
    lane[:] = 0.0
    for start in range(0, row.size, LANES):
        piece, out = row[start : start + LANES], hi[start : start + LANES]
        factor, offset = weight[start : start + LANES], bias[start : start + LANES]
        for k in range(piece.size):
            d = piece[k]
            y = fma(d * r, factor[k], offset[k])
            out[k] = y
            size = abs(y)
            top = lane[k]
            lane[k] = size if size > top else top
    return largest(lane)


@njit
def write_gradient(
    row: Any,
    dy: Any,
    weight: Any,
    parts: tuple[float, float, float],
    hi: Any,
    scratch: Any,
) -> float:
    """hi = fl(fma(-d, beta, fl(t - a)) r) with t and d as above; max|hi|."""
    a, beta, r = parts
    lane = scratch[:LANES]
    lane[:] = 0.0
    for start in range(0, row.size, LANES):
        piece, grad = row[start : start + LANES], dy[start : start + LANES]
        factor, out = weight[start : start + LANES], hi[start : start + LANES]
        for k in range(piece.size):
            d = piece[k]
            t = np.float64(grad[k]) * factor[k]
            dx = fma(-d, beta, t - a) * r
            out[k] = dx
            size = abs(dx)
            top = lane[k]
            lane[k] = size if size > top else top
    return largest(lane)


@njit
def add_parameter_gradients(
    row: Any, dy: Any, r: float, errors: tuple[float, float], columns: Any
) -> None:
    """Column sums of dy and of p = fl(fl(d r) dy), compensated, of |dy|, and of the error
    |dy| A + |p| B of p. `columns`: for each LANES columns the lanes s, c of p, s, c of dy, the sum
    of |dy| and the error."""
    a, b = errors
    for start in range(0, row.size, LANES):
        piece, grad = row[start : start + LANES], dy[start : start + LANES]
        lane = columns[6 * start : 6 * (start + LANES)]
        for k in range(piece.size):
            y = np.float64(grad[k])
            p = (piece[k] * r) * y
            s, e = two_sum(lane[k], p)
            lane[k] = s
            lane[LANES + k] += e
            s, e = two_sum(lane[2 * LANES + k], y)
            lane[2 * LANES + k] = s
            lane[3 * LANES + k] += e
            size = abs(y)
            lane[4 * LANES + k] += size
            lane[5 * LANES + k] += size * a + abs(p) * b
