"""The float64 tier: LayerNorm of float32 and narrower inputs in one pass, one radius a row.

u = 2^-53, kappa as in `lanes`; roman letters without a hat are computed quantities. Bounds are to
first order; second-order terms and the rounding of the bounds are below the factor SLACK = 1.01.

Statistics. mean = c + delta up to E = kappa (|c| + |delta| + S) + 2.05 u |delta| (`lanes`; mean|x|
is at most |c| plus mean|x - c|). d0 = fl(x - c) is off by u |d0| at most; q = fl(sum d0^2 / n),
S = sqrt(q) >= mean|d0| (Cauchy-Schwarz). The mean of (x - c)^2 is q up to (5.2 u + kappa) q (2.05
from d0, 1 from squares, 2 from rounding the sum and dividing it), and exceeds the variance by
(mean - c)^2. So V = fl(fl(q - fl(delta^2)) + eps), v = V before eps is added, has
    e_V = ((5.2 u + kappa) q + 2 |delta| E + E^2 + u delta^2 + u |v|) / V + u          relative
    e_r = 0.51 e_V + 2.05 u                                                            relative
for r = fl(1 / fl(sqrt(V))). d = fl(d0 - delta), with |d0| <= (1 + u) |d| + |delta|, is off by
    F + 2.05 u |d|,   F = E + 1.01 u |delta|,
and |delta| is about u |c| at most: a large mean is subtracted before anything is rounded.
y = fma(fl(d r), g, b):
    |g| r F + |g| r |d| (e_r + 3.1 u) + u |y|, with maxima over the row for |g|, |d| and |y|.
dx = r (t - a - d beta), t = fl(dy g), tau = sqrt(mean t^2) >= mean|t|, s = S + |delta| >=
sqrt(mean d^2):
    a = mean t:        e_a = (u + kappa) tau + 2.05 u |a|
    b = mean(t d):     e_b = F tau + (4.1 u + kappa) tau s + 2.05 u |b|
    beta = fl(b / V):  e_beta = e_b / V + |beta| (e_V + 1.05 u)
    z = fma(-d, beta, fl(t - a)):
        e_z = e_a + u (2 |t| + |a|) + (F + 2.05 u |d|) |beta| + (|d| + F) e_beta + u |z|
    dx = fl(z r):      r e_z + |dx| (e_r + u), with maxima over the row; u |z| r <= 1.01 u |dx|.
Where t is constant dx is 0, because then a = t and sum(t d) = 0.
dweight = sum of p = fl(fl(d r) dy) over R rows in blocks: each p is off by |dy| A + |p| B with
A = r F, B = e_r + 4.2 u; the compensated sum adds kappa(R') sum|p| <= kappa(R') (error) / (4 u),
where R' counts the rows of a block, the blocks, and 2. dbias: kappa(R') sum|dy|.

Range. x and dy are float32: 0, or in [2^-149, 2^128]; eps, and the weights and biases, are 0 or
in [2^-200, 2^200]. Nothing overflows: |dx| is the largest, below 2^128 2^200 r n, r <= 2^150 n
(a row that is not constant has a variance above 2^-298 / n^2; a constant one takes eps, and dx is
computed there as z r with d = 0). No underflow matters: c has no bits below 2^-260, so
neither has any d0, d or delta that is not 0, and squares stay above 2^-520; t >= 2^-349, so
that t^2 > 2^-700; products of d, r, g and t likewise stay above 2^-1000 next to radii that are u
times the largest of their row. Rows where e_V is not a number below 2^-30 go on to the next tier.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.jit import inner, njit
from refkernels.kernels.rows import lanes
from refkernels.kernels.rows.lanes import U
from refkernels.kernels.rows.passes import STRIP
from refkernels.kernels.rows.screening import Screen, doubtful

SLACK = 1.01
SMALLEST = 2.0**-200
LARGEST = 2.0**200
REGULAR, CONSTANT, NEXT_TIER, NOT_FINITE = 0, 1, 2, 3
_ROWS = 16  # the fewest rows of a block
_BLOCKS = 64  # the most blocks
_GROUP = 16  # rows whose x and dy are still in a near cache when their column sums are taken

STATISTICS = np.dtype(
    [
        ("state", np.int64),
        ("c", np.float64),
        ("delta", np.float64),
        ("mean_error", np.float64),  # E
        ("d_error", np.float64),  # F
        ("spread", np.float64),  # S
        ("largest", np.float64),  # >= max|d|
        ("v", np.float64),  # V
        ("v_error", np.float64),
        ("r", np.float64),
        ("r_error", np.float64),
    ]
)


@inner
def _fill_statistics(row: Any, eps: float, out: Any, d: Any) -> None:
    n = row.size
    c, delta = lanes.row_mean(row)
    squares, top = lanes.deviation_squares(row, c, delta, d)
    q = squares / n
    kappa = lanes.row_kappa(n)
    spread = math.sqrt(q)
    error = kappa * (abs(c) + abs(delta) + spread) + 2.05 * U * abs(delta)
    if top == 0.0:  # constant: c is the mean
        error = 0.0
    variance = q - delta * delta
    v = variance + eps
    variance_error = (5.2 * U + kappa) * q + 2.0 * abs(delta) * error + error * error
    variance_error += U * delta * delta + U * abs(variance)
    out.c, out.delta, out.spread, out.v = c, delta, spread, v
    out.mean_error, out.d_error = SLACK * error, SLACK * (error + 1.01 * U * abs(delta))
    out.largest = top + abs(delta)
    if not math.isfinite(c):
        out.state = NOT_FINITE
    elif top == 0.0:
        out.state = CONSTANT
    else:
        out.state = REGULAR
    if v > 0.0:
        out.v_error = SLACK * (variance_error / v + U)
        out.r = 1.0 / math.sqrt(v)
        out.r_error = 0.51 * out.v_error + 2.05 * U
        if out.state == REGULAR and not out.v_error < 2.0**-30:
            out.state = NEXT_TIER
    else:  # 0 in a constant row without eps, else it is unknown
        out.v_error, out.r, out.r_error = 0.0, math.inf if v == 0.0 else math.nan, 0.0
        if out.state == REGULAR:
            out.state = NEXT_TIER


@inner
def _write_row(d: Any, weight: Any, bias: Any, statistics: Any, hi: Any) -> float:
    """Writes y of a row of deviations into hi; returns max|y|."""
    if statistics.state == CONSTANT and statistics.r < math.inf:
        for j in range(d.size):
            hi[j] = bias[j] + 0.0  # no negative zero
        return lanes.largest(np.abs(bias))
    if statistics.state != REGULAR:
        hi[:] = math.nan
        return 0.0
    return lanes.write_normalised(d, weight, bias, statistics.r, hi)


@njit(nogil=True)
def normalise_rows(
    first: int, last: int, x: Any, weight: Any, bias: Any, eps: float, screen: Screen, out: Any
) -> None:
    """y of rows first to last of x (float32). `out`: statistics, y, and for each row y's radius,
    max|y| and how many elements the question may leave open. Undefined rows and rows for the next
    tier get NaN and zeros."""
    rows, hi, radius, top, doubts = out
    widest = lanes.largest(np.abs(weight))
    d = np.empty(x.shape[1])
    for i in range(first, last):
        statistics = rows[i]
        _fill_statistics(x[i], eps, statistics, d)
        top[i] = _write_row(d, weight, bias, statistics, hi[i])
        radius[i] = 0.0
        if statistics.state == REGULAR:
            spread = statistics.d_error + statistics.largest * (statistics.r_error + 3.1 * U)
            radius[i] = SLACK * (widest * statistics.r * spread + U * top[i])
        doubts[i] = doubtful(hi[i], radius[i], screen)


@inner
def _write_gradient(d: Any, dy: Any, weight: Any, statistics: Any, hi: Any) -> Any:
    """Writes dx of a row of deviations into hi; returns its radius and max|dx|."""
    n = d.size
    if statistics.state > CONSTANT or not statistics.r < math.inf:
        hi[:] = math.nan
        return 0.0, 0.0
    sum_t, sum_td, squares, tmax, varies = lanes.projection_sums(d, dy, weight)
    if not math.isfinite(squares):
        hi[:] = math.nan
        return 0.0, 0.0
    if not varies:
        hi[:] = 0.0
        return 0.0, 0.0
    a, b, tau = sum_t / n, sum_td / n, math.sqrt(squares / n)
    beta = b / statistics.v
    kappa, f = lanes.row_kappa(n), statistics.d_error
    a_error = (U + kappa) * tau + 2.05 * U * abs(a)
    b_error = f * tau + 2.05 * U * abs(b)
    b_error += (4.1 * U + kappa) * tau * (statistics.spread + abs(statistics.delta))
    beta_error = b_error / statistics.v + abs(beta) * (statistics.v_error + 1.05 * U)
    parts = (a, beta, statistics.r)
    top = lanes.write_gradient(d, dy, weight, parts, hi)
    error = a_error + U * (2.0 * tmax + abs(a)) + (f + 2.05 * U * statistics.largest) * abs(beta)
    error += (statistics.largest + f) * beta_error
    return SLACK * SLACK * (statistics.r * error + top * (statistics.r_error + 2.1 * U)), top


@njit
def block_rows(height: int) -> int:
    """The number of rows of a block, which does not depend on the threads."""
    return max(_ROWS, (height + _BLOCKS - 1) // _BLOCKS)


@njit(nogil=True)
def differentiate_rows(
    first: int,
    last: int,
    x: Any,
    dy: Any,
    weight: Any,
    eps: float,
    step: int,
    screen: Screen,
    out: Any,
    sums: Any,
) -> None:
    """dx of the rows of one block as `normalise_rows` gives y, and the block's column sums into
    its row of `sums`, zero before: see lanes.add_parameter_gradients."""
    rows, hi, radius, top, doubts = out
    columns = sums[first // step]
    d, numbers = np.empty(x.shape[1]), np.empty((_GROUP, lanes.ROW_NUMBERS))
    for start in range(first, last, _GROUP):
        stop = min(start + _GROUP, last)
        for i in range(start, stop):
            statistics = rows[i]
            _fill_statistics(x[i], eps, statistics, d)
            radius[i], top[i] = _write_gradient(d, dy[i], weight, statistics, hi[i])
            doubts[i] = doubtful(hi[i], radius[i], screen)
            at = numbers[i - start]
            at[0], at[1], at[2] = statistics.c, statistics.delta, statistics.r
            at[3], at[4] = statistics.r * statistics.d_error, statistics.r_error + 4.2 * U
        lanes.add_parameter_gradients(x, dy, start, stop, numbers, columns)


def empty_sums(height: int, n: int) -> npt.NDArray[np.float64]:
    """The zeros to which `differentiate_rows` adds the sums of its blocks of rows."""
    blocks = -(-height // block_rows(height))
    return np.zeros((blocks, lanes.COLUMN_TALLIES * STRIP * -(-n // STRIP)))


@njit
def column_sums(sums: Any, height: int, weight_out: Any, bias_out: Any) -> None:
    """dweight and dbias as (3, n): hi, lo, radius, from the blocks of `gradients`, in order."""
    kappa = lanes.kappa(block_rows(height) + sums.shape[0] + 2)
    for j in range(weight_out.shape[1]):
        at = lanes.column_place(j)
        ps, pc, ys, yc, size, error = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for block in range(sums.shape[0]):
            part = sums[block, at : at + 5 * STRIP + 1]
            ps, e = two_sum(ps, part[0])
            pc = (pc + part[STRIP]) + e
            ys, e = two_sum(ys, part[2 * STRIP])
            yc = (yc + part[3 * STRIP]) + e
            size += part[4 * STRIP]
            error += part[5 * STRIP]
        weight_out[0, j], weight_out[1, j] = two_sum(ps, pc)
        weight_out[2, j] = SLACK * error * (1.0 + kappa / (4.0 * U))
        bias_out[0, j], bias_out[1, j] = two_sum(ys, yc)
        bias_out[2, j] = SLACK * kappa * size
