"""A rigorous bound on the error of LayerNorm's named forms, for every output.

Notation and errors of the statistics (E, dr, xi, R, W, G, u, eta) as in `row_errors`; besides,
t = dy g, T = mean|t|, a = mean t, c = mean(t xhat), q = c / r = mean(t d), D = max|dy|,
Gamma = max|g|; l(f, ...) is `underflow.loss` of the factors f, ..., in any association.

**The forms** are the mean, variance, rstd and xhat that `row_errors` names, every sum in any order,
every product in any association, with FMA or without (/ sqrt(V) may stand for r), and
    y         d r g + b;  x r g + (b - m r g);  (x r - m r) g + b
    dx        r (t - a - xhat c);
              (r / n) (n t - sum(t) - xhat sum(t xhat)), as PyTorch's on a GPU;
              dy g r - a r - d r r c, with c the mean of dy g d r;
              dy g r + b x - (b m + a r) with b = (sum(t) m - sum(dy g x)) r^3 / n, as PyTorch's on
              a CPU;
              autograd through mean, variance and rstd: dv = -sum(t d) r^3 / 2,
              dd = t r + 2 d dv / n, dx = dd - mean(dd)
    dweight   sum(dy xhat);  sum(dy d r)
    dbias     sum(dy)

**y**: |g| xi + 4 u (|g xhat| + |b|) + 2 l(W, R, |g|) + 2 eta. Two products x r g and m r g, of
factors below W / 2, or one, lose 2 l; a folded xhat's product with g loses eta / 2.

**dx**: dc = mean(|t| xi) + 2 G X R T + 8 l(D, Gamma, W, R) bounds the error of c
(|xhat| <= 2 X r), also where c is (sum(t x) - mhat sum(t)) rhat / n: mean|t x| and |m| T each carry
gamma_n, and E T R sits in mean(|t| xi). With C = |c| + dc,
    dr |t - a - xhat c| + R [ G T + xi C + |xhat| dc + 12 u (|t| + |a| + |xhat c|) ] + L.
With rhat = r + rho, |rho| <= dr, the formula's product |xhat chat - xhat c| <= xi C + |xhat| dc.
In PyTorch's form b = -q rhat^3, and rhat (t - a) - rhat^3 q d differs from dx by
rho (t - a - xhat c) - rho (rhat^2 + rhat r) q d; the second part is at most
dr |q d| (R r + R r + R dr), which R xi |c| holds by |d| dr r |q|, R |xhat| dc by mean|t d| dr
>= |q| dr, and R xi dc by |d| dr |q| dr;
b x + (-b m - a r) rounds quantities up to X q r^2 four times: in the 5 u X R of xi. Through
autograd, mean(dhat) enters multiplied by b; the common error of dhat cancels, and its rounding is
at most G mean|d| r^2 |q| <= G X R |c|.
Underflow, where `row_errors` does not cover it:
    L = R [ 12 l(D, Gamma) + 4 l(W R, C) ] + 8 l(R, D, Gamma) + 4 l(W, R, R, C)
        + (|d| + 2 E) db + 4 eta,
    db = R^3 dq + 6 l(n q', R, R, R, 1/n),   dq = 4 l(D, Gamma, W).
In the brackets: t, a's terms and their division by n, before r multiplies them, and xhat c. c's
terms lose l(D, Gamma, W, R) each, twice that where xhat is folded, and its division no more. dq is
the error of q: its terms t x or t d, the t in sum(t) m, that product and the division.
q' = T (max|d| + 2 E + 4 G X) + dq is not below the computed |q|. db is the error of b, with the
factors 1/2 and 2 of autograd; b multiplies what differs from d by E at most. 4 eta: the last
products, b x, b m, r t and r a or their like, eta / 2 each.

**dweight**: sum(|dy| xi + eta A) (1 + gamma_{R+8}) + gamma_{R+8} sum|dy xhat|, with
A = 1 + W + R + |dy| the amplification in dy d r; **dbias**: gamma_{R+8} sum|dy| (R rows here):
additions lose nothing by underflow.

Second order: each bound is multiplied by 1 + 16 u, and products of two errors are included by using
R for r and C for c. 4 eta cover the underflow in this module's own float64 evaluation. Overflow:
where an intermediate product, in some association, or a sum may overflow, a kernel may answer
anything, and the bound is infinite.

16-bit formats: all of it in binary32; the outputs, mean and rstd too, are rounded once, u_out times
the value and half an output subnormal. In backward, mean and rstd may come from 16-bit storage.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format, working_format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.underflow import amplification, loss
from refkernels.layernorm_ref.arguments import NormalizedShape, RowProblem, prepare, widened
from refkernels.layernorm_ref.oracle import (
    Backward,
    BackwardArrays,
    ForwardArrays,
    Statistics,
    solve,
    statistics_of,
)
from refkernels.layernorm_ref.row_errors import INFLATION, RowErrors, gamma, row_errors

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@with_default_fenv
def forward_bound(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    format: Format | str,
) -> ForwardArrays:
    """|computed - exact| of the named forms in `format`, for y, mean and rstd; float64.

    Infinite where a form may overflow inside, and in rows that are not finite. Raises as `forward`,
    and ValueError for an unknown format.
    """
    target = formats.get(format)
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape)
    return bound_of_forward(problem, statistics_of(problem), target)


def bound_of_forward(problem: RowProblem, exact: Statistics, target: Format) -> ForwardArrays:
    """`forward_bound`, from known statistics of the rows."""
    height = problem.x.shape[0]
    y, (mean, rstd) = np.zeros(problem.x.shape), np.zeros((2, height, 1))
    with np.errstate(all="ignore"):
        for rows, part in problem.parts():
            e = row_errors(part, exact.of(rows), target, stored=False)
            large = e.overflows | _y_overflows(part, e, working_format(target))
            y[rows] = _output(_y_error(part, e), part.weight * e.xhat + part.bias, large, target)
            mean[rows] = _output(e.mean_error, e.mean, e.overflows, target)
            rstd[rows] = _output(e.r_error, e.r, e.overflows, target)
    return ForwardArrays(
        y.reshape(problem.shape), mean.reshape(problem.leading), rstd.reshape(problem.leading)
    )


def _y_error(problem: RowProblem, e: RowErrors) -> Array:
    size = np.abs(problem.weight)
    rounding = 4.0 * e.u * (size * np.abs(e.xhat) + np.abs(problem.bias))
    underflow = 2.0 * loss(e.eta, e.reach, e.r_above, size) + 2.0 * e.eta
    error: Array = size * e.xhat_error + rounding + underflow
    return error


def _y_overflows(problem: RowProblem, e: RowErrors, work: Format) -> Mask:
    product = (1.0 + e.reach) * (1.0 + e.r_above) * (1.0 + np.abs(problem.weight))
    overflows: Mask = ~(1.1 * (product + np.abs(problem.bias)) < work.max)
    return overflows


def _output(error: Array, value: Array, overflows: Any, format: Format) -> Array:
    """The error after the output's rounding; infinite where the answer may have overflowed."""
    work = working_format(format)
    if format.p < work.p:
        error = error + format.u * (np.abs(value) + error) + format.min_subnormal
    error = error * (1.0 + 16.0 * work.u) * INFLATION + 4.0 * work.min_subnormal
    unbounded = overflows | (np.abs(value) + error >= format.max)
    return np.where(unbounded | ~np.isfinite(error), np.inf, error)


@with_default_fenv
def backward_bound(
    dy: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    format: Format | str,
) -> BackwardArrays:
    """|computed - exact| of the named forms of the gradient in `format`, for dx, dweight, dbias.

    Infinite where a form may overflow inside, and where something is not finite. Raises as
    `backward`, and ValueError for an unknown format.
    """
    target = formats.get(format)
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape, dy=dy)
    return bound_of_backward(problem, solve(problem), statistics_of(problem), target)


def bound_of_backward(
    problem: RowProblem, exact: Backward, statistics: Statistics, target: Format
) -> BackwardArrays:
    """`backward_bound`, from known gradients and statistics of the rows."""
    height, n = problem.x.shape
    flat_dx = np.asarray(exact.dx).reshape(height, n)
    dx, sums = np.zeros((height, n)), _ColumnSums(n, working_format(target))
    with np.errstate(all="ignore"):
        for rows, part in problem.parts():
            e = row_errors(part, statistics.of(rows), target, stored=True)
            sums.add(np.abs(widened(part.cotangent)), e)
            gradient = _RowGradients(part, e)
            large = e.overflows | gradient.overflows(working_format(target))
            dx[rows] = _output(gradient.dx_error(), flat_dx[rows], large, target)
        dweight, dbias = sums.bounds(height, exact, target)
    return BackwardArrays(
        dx.reshape(problem.shape),
        dweight.reshape(problem.normalized),
        dbias.reshape(problem.normalized),
    )


class _ColumnSums:
    """The sums over rows that the bounds of dweight and dbias need."""

    def __init__(self, n: int, work: Format) -> None:
        self.terms, self.scaled, self.size = np.zeros((3, n))
        self.overflows = np.zeros(n, np.bool_)
        self.work = work

    def add(self, size: Array, e: RowErrors) -> None:
        """Adds some rows of |dy|."""
        lost = e.eta * amplification(e.reach, e.r_above, size)
        self.terms += np.sum(size * e.xhat_error + lost, axis=0)
        self.scaled += np.sum(size * np.abs(e.xhat), axis=0)
        self.size += np.sum(size, axis=0)
        product = np.max((1.0 + size) * (1.0 + e.reach) * (1.0 + e.r_above), axis=0, initial=0.0)
        self.overflows |= ~(1.1 * product < self.work.max) | e.overflows.any()

    def bounds(self, height: int, exact: Backward, format: Format) -> tuple[Array, Array]:
        """The bounds of dweight and dbias."""
        growth = gamma(height + 8.0, self.work.u)
        dweight = self.terms + growth * (self.scaled + self.terms)
        dbias = growth * self.size
        overflowing = ~(1.1 * self.size < self.work.max)
        large = self.overflows | overflowing | ~(1.1 * (self.scaled + dweight) < self.work.max)
        return (
            _output(dweight, np.asarray(exact.dweight).reshape(-1), large, format),
            _output(dbias, np.asarray(exact.dbias).reshape(-1), overflowing, format),
        )


class _RowGradients:
    """The quantities that the bound of dx needs for some rows: t, a, c and dc; columns except t."""

    def __init__(self, problem: RowProblem, e: RowErrors) -> None:
        self.e = e
        dy = widened(problem.cotangent)
        self.t = dy * problem.weight
        self.n = float(self.t.shape[1])
        size = np.abs(self.t)
        self.largest_dy = np.max(np.abs(dy), axis=1, keepdims=True)
        self.largest_weight = float(np.max(np.abs(problem.weight)))
        self.average = np.mean(size, axis=1, keepdims=True)
        self.a = np.mean(self.t, axis=1, keepdims=True)
        self.c = np.mean(self.t * e.xhat, axis=1, keepdims=True)
        self.moment = np.mean(np.abs(self.t * e.xhat), axis=1, keepdims=True)
        above = e.r_above
        dc = np.mean(size * e.xhat_error, axis=1, keepdims=True)
        dc = dc + 2.0 * e.growth * e.largest * above * self.average
        factors = self.largest_dy, self.largest_weight, e.reach
        self.dc = dc + 8.0 * loss(e.eta, *factors, above)
        self.dq = 4.0 * loss(e.eta, *factors)
        spread = e.largest_d + 2.0 * e.mean_error + 4.0 * e.growth * e.largest
        self.q = self.average * spread + self.dq

    def overflows(self, work: Format) -> Mask:
        """Rows in which a product or a sum of some form may overflow."""
        e, above = self.e, 1.0 + self.e.r_above
        sums = self.n * (1.0 + self.largest_dy) * (1.0 + self.largest_weight) * (1.0 + e.reach)
        product = (1.0 + self.n * self.q) * above**3 * (1.0 + e.reach)
        overflows: Mask = ~(4.0 * np.maximum(sums * above, product) < work.max)
        return overflows

    def dx_error(self) -> Array:
        e, above = self.e, self.e.r_above
        size, xhat, c = np.abs(self.t), np.abs(e.xhat), np.abs(self.c)
        # t - a - xhat c cancels: the error of its own float64 evaluation is added
        z = np.abs(self.t - self.a - e.xhat * self.c)
        z = z + 2.0**-52 * (12.0 + np.log2(self.n)) * (size + self.average + xhat * self.moment)
        inner = e.growth * self.average + e.xhat_error * (c + self.dc) + xhat * self.dc
        inner = inner + 12.0 * e.u * (size + np.abs(self.a) + xhat * c)
        error: Array = e.r_error * z + above * inner + self._underflow()
        return error

    def _underflow(self) -> Array:
        """L of the module's header."""
        e, above = self.e, self.e.r_above
        eta, factors = e.eta, (self.largest_dy, self.largest_weight)
        c = np.abs(self.c) + self.dc
        db = 6.0 * loss(eta, self.n * self.q, above, above, above, 1.0 / self.n)
        db = db + above**3 * self.dq
        inside = 12.0 * loss(eta, *factors) + 4.0 * loss(eta, e.reach * above, c)
        outside = 8.0 * loss(eta, above, *factors) + 4.0 * loss(eta, e.reach, above, above, c)
        lost: Array = (np.abs(e.d) + 2.0 * e.mean_error) * db + above * inside + outside
        return lost + 4.0 * eta
