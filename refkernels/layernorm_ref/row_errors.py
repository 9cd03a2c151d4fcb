"""Bounds on the errors of a stable LayerNorm's statistics and xhat, row by row.

Notation: u is the unit roundoff of the working precision (binary64 for float64, binary32 for
narrower formats), eta its smallest subnormal, G = gamma_{n+8}, X = max|x|, m the mean, v the
variance, V = v + eps, r = V^(-1/2), sigma = v^(1/2), d = x - m, xhat = d r. Hats are computed
values.

The bounds hold in IEEE arithmetic with gradual underflow, with FMA or without, for
    mean      a sum in any order, divided by n or multiplied by fl(1/n); Welford's update
              m + delta / k (or delta fl(1/k)); Chan merges m_a + delta (n_b / n) in which the
              second part is not the larger one, save once on the way from any leaf to the root
    variance  two passes, mean (x - mhat)^2; Welford's update; Chan's, delta^2 n_a n_b / n
    rstd      eps rounded to the working precision; rsqrt, or square root and division, to within
              2 ulp together
    xhat      d r; d / sqrt(V); x r - m r
One-pass E[x^2] - E[x]^2 is not stable.

**Mean**, E = G X + (n + 8) eta. A sum in any order has an error gamma_n mean|x| <= G X. Welford:
e_k <= (1 - 1/k) e_{k-1} + 6 u X / k + u X (difference <= 2X, two or three roundings, one addition),
so e_n <= (6 + (n + 1) / 2) u X for n >= 2, and 0 for n = 1. Chan: with e <= C(n) u X,
C(n) <= max over n_a + n_b = n of (n_a C(n_a) + n_b C(n_b)) / n + 6 n_b / n + 1. The recursion
gives C(n) <= n + 8 (evaluated for n < 260 in the tests; for larger n a split loses 2 n_a n_b / n
against (n_a^2 + n_b^2) / n = n - 2 n_a n_b / n, which outweighs 6 n_b / n + 1 when n_a >= n_b >= 2,
and a reversed split, once, adds at most 6). Underflow: additions lose nothing; the division, and
each step or merge, loses eta / 2, which later steps only shrink: at most n + 8 of them.

**Variance**, dv = 3 E sigma + 2 E^2 + 2 G v + 4 u eps + (9 + log2 n) eta.
Two passes: mean (x - mhat)^2 = v + (mhat - m)^2, each term through at most n + 4 roundings: no
cross term, E^2 + G (v + E^2). Welford: the terms (x_k - mhat_{k-1}) (x_k - mhat_k) differ from the
exact ones, which add up to n v, by (x_k - m_k) e_{k-1} + (x_k - m_{k-1}) e_k + e_k e_{k-1}; by
Cauchy-Schwarz with sum (1 - 1/k) (x_k - m_{k-1})^2 = n v their mean is at most
E sigma (1 + sqrt(1 + (H_{n-1} - 1) / n)) + E^2 <= 2.11 E sigma + E^2. Chan: delta^2 n_a n_b / n
adds up to n v over the merges, and by Cauchy-Schwarz the mean error is at most
2 sigma sqrt(F / n) u X + E^2 with F(n) <= F(n_a) + F(n_b) + (C(n_a) + C(n_b))^2 n_a n_b / n,
and F(n) <= 0.65 n (n + 8)^2 by the same recursion (tests; by induction for larger n, because
n (n + 8)^2 grows by n_a n_b (3 n + 32) over its parts and (C_a + C_b)^2 / n <= (n + 16)^2 / n is
smaller). In each, a further G (v + 2.11 E sigma + E^2) for at most n + 8 roundings; with G <= 0.1
the sum is below dv, whose slack 0.6 E sigma + 0.9 G v also holds the rounding of v + eps. All terms
are >= 0, so vhat >= 0. Underflow: each square loses eta / 2, and so does the division by n. A merge
multiplies the loss of delta^2 by n_a n_b / n, and these add up to at most (n / 2) log2 n; its two
other products lose eta / 2 times n_b / n and 1. (delta n_b / n loses something only where delta is
below n times the smallest normal: times delta, that is far below eta.) Divided by n, at most
(4 + log2 n) eta / 2. The rest of the (9 + log2 n) eta covers v's own evaluation in float64.

**rstd**: rhat in [r-, r+] (1 ± 6u), r± = (V ∓ dv)^(-1/2) with v - dv not below 0 (2 ulp are up to
4u; eps and v + eps are rounded besides; an eps that the working precision holds as a subnormal, or
as 0, is off by more than u eps: that loss is taken off V and added to dv):
dr = max(r+ - r, r - r-) + 6 u r+, and R = r + dr >= rhat. Nothing underflows: R > 2^(-emax/2 - 1).

**xhat**: xi = (E + 5 u X) R + |d| dr + 4 u |xhat| + 2 eta.
Centred: (|mhat - m| + u |x - mhat|) rhat + |d| |rhat - r| + 2u |..|. Folded: the products x r and
m r and the last addition round quantities up to 2 X R, at most 5 u X R in all, also where r is
multiplied by a weight first. Underflow: one product or two, eta / 2 each.
W = 2 (X + E) is above |x - mhat|, and twice |x| and |mhat| are not above it.

Second order: products of two errors are included by using R for r; the factor 1 + 16 u of `bounds`
covers the rest. Overflow: where a form may overflow inside (sums of |x|; squares of differences,
also from 0, the mean of a part that is still empty), it may answer anything, and the bound is
infinite; likewise where (n + 8) u > 0.1.

16-bit formats: in backward, mean and rstd may come from 16-bit storage. E and dr take up these
roundings: u_out of the computed value, and half an output subnormal.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format, working_format
from refkernels.layernorm_ref.arguments import RowProblem, widened
from refkernels.layernorm_ref.oracle import Statistics

Array = npt.NDArray[np.float64]
INFLATION = 1.0 + 1e-9  # float64 evaluation of the bound itself, all of it non-negative sums


def gamma(k: float, u: float) -> float:
    """k u / (1 - k u); infinite for k u >= 1."""
    return k * u / (1.0 - k * u) if k * u < 0.1 else math.inf


@dataclass(frozen=True)
class RowErrors:
    """The exact statistics of the rows (as columns, to float64) and the errors allowed in them.

    `reach` is W of the module's header, `largest_d` max|d|, `growth` G.
    """

    x: Array
    d: Array
    largest: Array
    largest_d: Array
    reach: Array
    mean: Array
    mean_error: Array
    r: Array
    r_error: Array
    xhat: Array
    xhat_error: Array
    overflows: npt.NDArray[np.bool_]
    growth: float
    u: float
    eta: float

    @property
    def r_above(self) -> Array:
        return self.r + self.r_error


def mean_tail(mean: Enclosure) -> Array:
    """The remainder of the means beyond float64, as a column, in x's own unit."""
    return np.ldexp(mean.lo, mean.scale)[:, None]


def _lost_eps(eps: float, work: Format) -> float:
    """The loss of a subnormal eps, rounded to the working precision: at most eps itself."""
    error = abs(float(formats.round_to(eps, work)) - eps)
    return error if error > work.u * eps else 0.0


def _rstd_error(r: Array, v: Array, dv: Array, eps: float, work: Format) -> Array:
    """dr; v in float64 is off by less than eta."""
    lost = _lost_eps(eps, work)
    up = np.expm1(-0.5 * np.log1p(-np.minimum((np.minimum(dv, v) + lost) / (v + eps), 1.0)))
    least = np.maximum(v - work.min_subnormal, 0.0) + eps
    down = -np.expm1(-0.5 * np.log1p((dv + lost) / least))
    error: Array = r * (np.maximum(up, down) + 6.0 * work.u * (1.0 + up))
    return error


def row_errors(
    problem: RowProblem, exact: Statistics, format: Format, *, stored: bool
) -> RowErrors:
    """E, dr, xi and W of the module's header; `stored`: with mean and rstd rounded to the
    format."""
    work = working_format(format)
    u, eta = work.u, work.min_subnormal
    x, n = widened(problem.x), problem.x.shape[1]
    growth = gamma(n + 8.0, u)
    mean = np.asarray(exact.mean)[:, None]
    r = np.asarray(exact.rstd)[:, None]
    d = (x - mean) - mean_tail(exact.mean)
    v = np.mean(d * d, axis=1, keepdims=True)
    largest, largest_d = (np.max(np.abs(of), axis=1, keepdims=True) for of in (x, d))
    mean_error = growth * largest + (n + 8.0) * eta
    dv = 3.0 * mean_error * np.sqrt(v + eta) + 2.0 * mean_error**2 + 2.0 * growth * v
    dv = (dv + 4.0 * u * problem.eps + (9.0 + math.log2(n)) * eta) * INFLATION
    r_error = _rstd_error(r, v, dv, problem.eps, work)
    sums = np.maximum(np.sum(np.abs(x), axis=1, keepdims=True), 2.0 * largest)
    squares = np.maximum(2.0 * float(n) ** 2 * (v + dv), 4.0 * largest**2)
    fits = (1.1 * sums < work.max) & (squares < work.max)
    if stored and format.p < work.p:
        fits &= (np.abs(mean) + mean_error < format.max) & (r + r_error < format.max)
        mean_error = mean_error + format.u * (np.abs(mean) + mean_error) + format.min_subnormal
        r_error = r_error + format.u * (r + r_error) + format.min_subnormal
    above = r + r_error
    xhat = d * r
    xhat_error = (mean_error + 5.0 * u * largest) * above + np.abs(d) * r_error
    xhat_error = xhat_error + 4.0 * u * np.abs(xhat) + 2.0 * eta
    reach = 2.0 * (largest + mean_error)
    return RowErrors(
        x, d, largest, largest_d, reach, mean, mean_error, r, r_error, xhat, xhat_error,
        ~(fits & (above < work.max)), growth, u, eta,
    )  # fmt: skip
