"""What any stable LayerNorm can be off by: a rigorous bound for every element of every output.

Notation: u is the unit roundoff of the working precision (binary64 for float64, binary32 for
narrower formats), eta its smallest subnormal, G = gamma_{n+8}, X = max|x|, m the mean, v the
variance, V = v + eps, r = V^(-1/2), d = x - m, xhat = d r, t = dy g, T = mean|t|, a = mean t,
c = mean(t xhat), q = c / r = mean(t d). Hats are computed values.

**Stable** means: IEEE arithmetic with gradual underflow; the mean by a sum in any order, divided
by n or multiplied by fl(1/n), or by Welford's update, or by Chan merges m_a + delta (n_b / n) in
which the second part is not the larger one, save once on the way from any leaf to the root; the
variance by two passes around the computed mean, by Welford's or by Chan's update; eps rounded to
the working precision; rsqrt, or square root and division, to within 2 ulp together; y as
(x - m) r g + b or folded, x (r g) + (b - m r g), in any association; dx by its formula, by
autograd through mean, variance and rsqrt, or folded as PyTorch's (sum(t) m - sum(t x)) r^3 / n;
every sum in any order; FMA or not. One-pass E[x^2] - E[x]^2 is not stable.

**Mean**, E = G X + (n + 8) eta. A sum in any order has an error gamma_n mean|x| <= G X. Welford:
e_k <= (1 - 1/k) e_{k-1} + 6 u X / k + u X (difference <= 2X, two or three roundings, one addition),
so e_n <= (6 + (n + 1) / 2) u X for n >= 2, and 0 for n = 1. Chan: with e <= C(n) u X,
C(n) <= max over n_a + n_b = n of (n_a C(n_a) + n_b C(n_b)) / n + 6 n_b / n + 1. The recursion
gives C(n) <= n + 8 (evaluated for n < 260 in the tests; for larger n a split loses 2 n_a n_b / n
against (n_a^2 + n_b^2) / n = n - 2 n_a n_b / n, which outweighs 6 n_b / n + 1 when n_a >= n_b >= 2,
and a reversed split, once, adds at most 6). Underflow: eta / 2 in each of at most n + 8 operations.

**Variance**, dv = 3 E sigma + 2 E^2 + 2 G v + 4 u eps + (8 + log2 n) eta.
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
are >= 0, so vhat >= 0. Underflow: eta / 2 a product; merges scale it by n_a n_b / n, which adds up
to at most (n / 2) log2 n.

**rstd**: rhat in [r-, r+] (1 ± 6u), r± = (V ∓ dv)^(-1/2) with v - dv not below 0 (2 ulp are up to
4u; eps and v + eps are rounded besides; an eps that the working precision holds as a subnormal, or
as 0, is off by more than u eps: that loss is taken off V and added to dv):
dr = max(r+ - r, r - r-) + 6 u r+, and R = r + dr >= rhat.

**xhat**: xi = (E + 5 u X) R + |d| dr + 4 u |xhat|. Centred: (|mhat - m| + u |x - mhat|) rhat
+ |d| |rhat - r| + 2u |..|. Folded: the products x r g and m r g, b - m r g and the last addition
round quantities up to 2X R |g|: at most 5 u X R |g| in all.
**y**: |g| xi + 4 u (|g xhat| + |b|).

**dx**: dc = mean(|t| xi) + 2 G X R T bounds the error of c (|xhat| <= 2 X r), also where c is
(sum(t x) - mhat sum(t)) rhat / n: mean|t x| and |m| T each carry gamma_n, and E T R sits in
mean(|t| xi).
    dr |t - a - xhat c| + R [ G T + xi (|c| + dc) + |xhat| dc + 12 u (|t| + |a| + |xhat c|) ].
With rhat = r + rho, |rho| <= dr, the formula's product |xhat chat - xhat c| <= xi (|c| + dc)
+ |xhat| dc. In PyTorch's form b = -q rhat^3, and rhat (t - a) - rhat^3 q d differs from dx by
rho (t - a - xhat c) - rho (rhat^2 + rhat r) q d; the second part is at most
dr |q d| (R r + R r + R dr), which R xi |c| holds by |d| dr r |q|, R |xhat| dc by mean|t d| dr
>= |q| dr, and R xi dc by |d| dr |q| dr;
b x + (-b m - a r) rounds quantities up to X q r^2 four times: in the 5 u X R of xi. Through
autograd, mean(dhat) enters multiplied by b; the common error of dhat cancels, and its rounding is
at most G mean|d| r^2 |q| <= G X R |c|.
**dweight**: sum |dy| xi + gamma_{R+8} sum |dy| (|xhat| + xi); **dbias**: gamma_{R+8} sum |dy|
(R rows here).

Second order: each bound is multiplied by 1 + 16 u, and products of two errors are kept by using
R for r and |c| + dc for c. Underflow of products: a few eta, times R or X where a later factor
is. Overflow: where a stable algorithm may overflow inside (sums of |x|, squares of differences,
r^3), it may answer anything, and the bound is infinite; likewise where (n + 8) u > 0.1.

16-bit formats: statistics in binary32; the outputs, mean and rstd too, are rounded once, u_out
times the value and half an output subnormal. In backward, mean and rstd may come from 16-bit
storage: E and dr take up these roundings.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.layernorm_ref.arguments import NormalizedShape, Problem, prepare, widened
from refkernels.layernorm_ref.oracle import Backward, Forward, backward, forward

Array = npt.NDArray[np.float64]
_INFLATION = 1.0 + 1e-9  # float64 evaluation of the bound itself, all of it non-negative sums


def working_format(format: Format) -> Format:
    """Where statistics are computed: binary32 for formats up to binary32, else binary64."""
    return BINARY64 if format.p > BINARY32.p else BINARY32


def gamma(k: float, u: float) -> float:
    """k u / (1 - k u), infinite where that means nothing."""
    return k * u / (1.0 - k * u) if k * u < 0.1 else math.inf


@dataclass(frozen=True)
class RowErrors:
    """The exact statistics of the rows (as columns, to float64) and the errors allowed in them."""

    x: Array
    d: Array
    largest: Array
    mean: Array
    mean_error: Array
    sigma: Array
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
    """What the means in float64 leave out, as a column: in x's own unit, the scale undone."""
    return np.ldexp(mean.lo, mean.scale)[:, None]


def _lost_eps(eps: float, work: Format) -> float:
    """What a subnormal eps loses when rounded to the working precision: up to all of it."""
    error = abs(float(formats.round_to(eps, work)) - eps)
    return error if error > work.u * eps else 0.0


def row_errors(problem: Problem, format: Format, *, stored: bool) -> RowErrors:
    """E, dr and xi of the module's text; `stored`: with mean and rstd rounded to the format."""
    work = working_format(format)
    u, eta = work.u, work.min_subnormal
    x, n = widened(problem.x), problem.x.shape[1]
    growth = gamma(n + 8.0, u)
    exact = forward(problem.x, eps=problem.eps)
    mean = np.asarray(exact.mean)[:, None]
    r = np.asarray(exact.rstd)[:, None]
    d = (x - mean) - mean_tail(exact.mean)
    v = np.mean(d * d, axis=1, keepdims=True) + eta
    sigma = np.sqrt(v)
    largest = np.max(np.abs(x), axis=1, keepdims=True)
    mean_error = growth * largest + (n + 8.0) * eta
    dv = 3.0 * mean_error * sigma + 2.0 * mean_error**2 + 2.0 * growth * v
    lost = _lost_eps(problem.eps, work)
    dv = (dv + 4.0 * u * problem.eps + lost + (9.0 + math.log2(n)) * eta) * _INFLATION
    total = v + problem.eps
    up = np.expm1(-0.5 * np.log1p(-np.minimum((np.minimum(dv, v) + lost) / total, 1.0)))
    down = -np.expm1(-0.5 * np.log1p(dv / total))
    r_error = r * (np.maximum(up, down) + 6.0 * u * (1.0 + up))
    if stored and format.p < work.p:
        mean_error = mean_error + format.u * np.abs(mean) + format.min_subnormal
        r_error = r_error + format.u * (r + r_error) + format.min_subnormal
    above = r + r_error
    xhat = d * r
    xhat_error = (mean_error + 5.0 * u * largest) * above + np.abs(d) * r_error
    xhat_error = xhat_error + 4.0 * u * np.abs(xhat) + eta * (4.0 + 4.0 * above)
    sums = np.maximum(np.sum(np.abs(x), axis=1, keepdims=True), 2.0 * largest)
    squares = 2.0 * float(n) ** 2 * (v + dv)
    limit = format.max if stored else work.max
    overflows = ~((1.1 * sums < work.max) & (squares < work.max) & (above < limit))
    return RowErrors(
        x, d, largest, mean, mean_error, sigma, r, r_error, xhat, xhat_error,
        overflows, growth, u, eta,
    )  # fmt: skip


def forward_bound(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    format: Format | str,
) -> Forward:
    """|computed - exact| of any stable LayerNorm in `format`, for y, mean and rstd; float64.

    Infinite where a stable algorithm may overflow inside, and in rows that are not finite.
    """
    target = formats.get(format)
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape)
    height = problem.x.shape[0]
    y, (mean, rstd) = np.zeros(problem.x.shape), np.zeros((2, height, 1))
    with np.errstate(all="ignore"):
        for rows, part in problem.parts():
            e = row_errors(part, target, stored=False)
            scaled = np.abs(part.weight * e.xhat)
            error = np.abs(part.weight) * e.xhat_error + 4.0 * e.u * (scaled + np.abs(part.bias))
            error = error + e.eta * (4.0 + np.abs(part.weight))
            y[rows] = _output(error, part.weight * e.xhat + part.bias, e.overflows, target)
            mean[rows] = _output(e.mean_error, e.mean, e.overflows, target)
            rstd[rows] = _output(e.r_error, e.r, e.overflows, target)
    return Forward(
        y.reshape(problem.shape), mean.reshape(problem.leading), rstd.reshape(problem.leading)
    )


def _output(error: Array, value: Array, overflows: Any, format: Format) -> Array:
    """The error after the output's rounding, infinite where the answer may have overflowed."""
    work = working_format(format)
    if format.p < work.p:
        error = error + format.u * (np.abs(value) + error) + format.min_subnormal
    error = error * (1.0 + 16.0 * work.u) * _INFLATION
    unbounded = overflows | (np.abs(value) + error >= format.max)
    return np.where(unbounded | ~np.isfinite(error), np.inf, error)


def backward_bound(
    dy: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    format: Format | str,
) -> Backward:
    """|computed - exact| of any stable LayerNorm gradient in `format`, for dx, dweight, dbias.

    Infinite where a stable algorithm may overflow inside, and where something is not finite.
    """
    target = formats.get(format)
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape, dy=dy)
    height, n = problem.x.shape
    exact = backward(problem.cotangent, problem.x, problem.weight, eps=problem.eps)
    flat_dx = np.asarray(exact.dx)
    dx, sums = np.zeros((height, n)), _ColumnSums(n)
    with np.errstate(all="ignore"):
        for rows, part in problem.parts():
            e = row_errors(part, target, stored=True)
            size = np.abs(widened(part.cotangent))
            sums.add(size, e)
            cubed = (1.0 + e.r_above) ** 3 * np.max(
                size * np.abs(part.weight), axis=1, keepdims=True
            )
            limit = working_format(target).max
            large = e.overflows | ~(4.0 * cubed * n * (1.0 + e.largest) < limit)
            value = flat_dx[rows]
            dx[rows] = _output(_dx_error(part, e), value, large, target)
        dweight, dbias = sums.bounds(height, exact, target)
    return Backward(
        dx.reshape(problem.shape),
        dweight.reshape(problem.normalized),
        dbias.reshape(problem.normalized),
    )


class _ColumnSums:
    """What the bounds of dweight and dbias need, added up over the rows."""

    def __init__(self, n: int) -> None:
        self.terms, self.scaled, self.size = np.zeros((3, n))
        self.overflows = False

    def add(self, size: Array, e: RowErrors) -> None:
        """The rows of |dy|."""
        self.terms += np.sum(size * e.xhat_error, axis=0)
        self.scaled += np.sum(size * np.abs(e.xhat), axis=0)
        self.size += np.sum(size, axis=0)
        self.overflows |= bool(e.overflows.any())

    def bounds(self, height: int, exact: Backward, format: Format) -> tuple[Array, Array]:
        """Of dweight and dbias."""
        work = working_format(format)
        growth = gamma(height + 8.0, work.u)
        dweight = (
            self.terms + growth * (self.scaled + self.terms) + 4.0 * height * work.min_subnormal
        )
        dbias = growth * self.size
        many = ~(1.1 * self.size < work.max)
        return (
            _output(dweight, np.asarray(exact.dweight), self.overflows | many, format),
            _output(dbias, np.asarray(exact.dbias), many, format),
        )


def _dx_error(problem: Problem, e: RowErrors) -> Array:
    t = widened(problem.cotangent) * problem.weight
    n = t.shape[1]
    size = np.abs(t)
    average = np.mean(size, axis=1, keepdims=True)
    a = np.mean(t, axis=1, keepdims=True)
    c = np.mean(t * e.xhat, axis=1, keepdims=True)
    moment = np.mean(np.abs(t * e.xhat), axis=1, keepdims=True)
    above = e.r_above
    dc = np.mean(size * e.xhat_error, axis=1, keepdims=True)
    dc = dc + 2.0 * e.growth * e.largest * above * average
    dc = dc + 8.0 * e.eta * (1.0 + above) * (1.0 + e.largest)
    product = np.abs(e.xhat) * np.abs(c)
    # t - a - xhat c cancels: its own float64 error is added
    z = np.abs(t - a - e.xhat * c)
    z = z + 2.0**-52 * (12.0 + math.log2(n)) * (size + average + np.abs(e.xhat) * moment)
    inner = e.growth * average + e.xhat_error * (np.abs(c) + dc) + np.abs(e.xhat) * dc
    inner = inner + 12.0 * e.u * (size + np.abs(a) + product)
    underflow = 8.0 * e.eta * (1.0 + above) ** 2 * (1.0 + e.largest) * (1.0 + np.abs(e.xhat))
    error: Array = e.r_error * z + above * inner + underflow
    return error
