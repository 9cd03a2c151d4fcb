"""Condition numbers and invariants of LayerNorm.

Condition numbers give the factor by which relative perturbations of the inputs, of size theta in
every element, are amplified in an output, to first order and by the triangle inequality. With
p_i = r (|x_i| + mean|x|) + |xhat_i| rho (for xhat_i, absolute) and rho = r mean(|xhat| |x|) (for
rstd, relative):
    mean     mean|x| / |mean|
    rstd     sigma sqrt(v + mean^2) / (v + eps): the variance's sqrt(1 + mean^2 / v) where eps = 0
    y        (|g| (p + |xhat|) + |bias|) / |y|
    dx       (rho |dx| + r (|xhat| mean(|t| p) + p |c|)
              + r (|t| + mean|t| + |xhat| mean|t xhat|)) / |dx|
    dweight  sum |dy| (p + |xhat|) / |dweight|
    dbias    sum |dy| / |dbias|
Infinite where the output is 0 and the numerator is not; 1 where both are 0.

Invariants hold for every stable kernel, rounding included: the computed variance is a sum of
products that are >= 0, so V >= eps (1 - 2u), and rstd is positive and at most eps^(-1/2) up to a
few roundings. |xhat| <= sqrt(n - 1), sum(xhat) = 0, sum(dx) = 0 and min(x) <= mean <= max(x) are
not invariants: harmless rounding breaks them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import working_format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.layernorm_ref.arguments import NormalizedShape, RowProblem, prepare, widened
from refkernels.layernorm_ref.oracle import (
    Backward,
    BackwardArrays,
    Forward,
    ForwardArrays,
    Statistics,
    solve,
    statistics_of,
)
from refkernels.layernorm_ref.row_errors import mean_tail
from refkernels.op import Arrays, Invariant

Array = npt.NDArray[np.float64]


def _ratio(amount: Array, value: Array) -> Array:
    value = np.abs(value)
    ratio = np.divide(amount, value, out=np.full_like(amount, np.inf), where=value != 0.0)
    return np.where((amount == 0.0) & (value == 0.0), 1.0, ratio)


def _sensitivity(x: Array, exact: Statistics) -> tuple[Array, Array, Array, Array]:
    """xhat, r, rho and p, rows by columns."""
    size = np.abs(x)
    r = np.asarray(exact.rstd)[:, None]
    d = (x - np.asarray(exact.mean)[:, None]) - mean_tail(exact.mean)
    xhat = d * r
    rho = r * _mean(np.abs(xhat) * size)
    return xhat, r, rho, r * (size + _mean(size)) + np.abs(xhat) * rho


def _mean(values: Array) -> Array:
    average: Array = np.sum(values, axis=1, keepdims=True) / values.shape[1]
    return average


@with_default_fenv
def forward_condition(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
) -> ForwardArrays:
    """Condition numbers of y, mean and rstd (see the module), float64. Raises as `forward`."""
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape)
    return condition_of_forward(problem, solve(problem), statistics_of(problem))


def condition_of_forward(
    problem: RowProblem, exact: Forward, statistics: Statistics
) -> ForwardArrays:
    """`forward_condition`, from a known answer and statistics of the rows."""
    height = problem.x.shape[0]
    values = np.asarray(exact.y).reshape(problem.x.shape)
    y, (mean, rstd) = np.zeros(problem.x.shape), np.zeros((2, height, 1))
    with np.errstate(all="ignore"):
        for rows, part in problem.parts():
            row_statistics = statistics.of(rows)
            wide, middle = widened(part.x), np.asarray(row_statistics.mean)[:, None]
            xhat, r, _, p = _sensitivity(wide, row_statistics)
            amount = np.abs(part.weight) * (p + np.abs(xhat)) + np.abs(part.bias)
            y[rows] = _ratio(amount, values[rows])
            mean[rows] = _ratio(_mean(np.abs(wide)), middle)
            # sigma r, which does not over- or underflow as v may
            spread = np.sqrt(_mean(xhat * xhat))
            constant = np.all(wide == wide[:, :1], axis=1, keepdims=True)
            rstd[rows] = np.where(constant, 0.0, spread * np.hypot(spread, middle * r))
    return ForwardArrays(
        y.reshape(problem.shape), mean.reshape(problem.leading), rstd.reshape(problem.leading)
    )


@with_default_fenv
def backward_condition(
    dy: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
) -> BackwardArrays:
    """Condition numbers of dx, dweight and dbias (see the module). Raises as `backward`."""
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape, dy=dy)
    return condition_of_backward(problem, solve(problem), statistics_of(problem))


def condition_of_backward(
    problem: RowProblem, exact: Backward, statistics: Statistics
) -> BackwardArrays:
    """`backward_condition`, from known gradients and statistics of the rows."""
    height, n = problem.x.shape
    gradient, dx = np.asarray(exact.dx).reshape(height, n), np.zeros((height, n))
    columns, sizes = np.zeros((2, n))
    with np.errstate(all="ignore"):
        for rows, part in problem.parts():
            xhat, r, rho, p = _sensitivity(widened(part.x), statistics.of(rows))
            grad = widened(part.cotangent)
            amount = _through_dx(xhat, r, p, grad * part.weight)
            amount = amount + rho * np.abs(gradient[rows])
            dx[rows] = _ratio(amount, gradient[rows])
            grad = np.abs(grad)
            columns += np.sum(grad * (p + np.abs(xhat)), axis=0)
            sizes += np.sum(grad, axis=0)
        dweight = _ratio(columns, np.asarray(exact.dweight).reshape(-1))
        dbias = _ratio(sizes, np.asarray(exact.dbias).reshape(-1))
    return BackwardArrays(
        dx.reshape(problem.shape),
        dweight.reshape(problem.normalized),
        dbias.reshape(problem.normalized),
    )


def _through_dx(xhat: Array, r: Array, p: Array, t: Array) -> Array:
    """The numerator for dx without its first term."""
    size = np.abs(t)
    linear = size + _mean(size) + np.abs(xhat) * _mean(np.abs(t * xhat))
    through_x = np.abs(xhat) * _mean(size * p) + p * np.abs(_mean(t * xhat))
    amount: Array = r * (through_x + linear)
    return amount


def _overflow_possible(x: npt.NDArray[Any], rows: int) -> npt.NDArray[np.bool_]:
    """Rows that are not finite, or whose sums of squares may overflow the working precision."""
    work = working_format(formats.of(x))
    wide = np.asarray(x, np.float64).reshape(rows, np.size(x) // max(rows, 1))
    with np.errstate(all="ignore"):
        size = np.max(np.abs(wide), axis=1, initial=0.0)
        return ~(8.0 * float(wide.shape[1]) ** 2 * size * size < work.max)


def _not_positive(
    got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]
) -> npt.NDArray[np.bool_]:
    values = np.asarray(got, np.float64)
    excused = _overflow_possible(inputs["x"], got.size).reshape(got.shape)
    return (values <= 0.0) & ~excused


def _above_limit(
    got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]
) -> npt.NDArray[np.bool_]:
    eps = float(params.get("eps", 1e-5))
    target = formats.of(got)
    if eps < 2.0 * working_format(target).min_normal:  # eps may vanish in the rounding
        return np.zeros(got.shape, np.bool_)
    allowed = (1.0 + 8.0 * working_format(target).u) * (1.0 + 2.0 * target.u) * eps**-0.5
    if allowed >= target.max:
        return np.zeros(got.shape, np.bool_)
    excused = _overflow_possible(inputs["x"], got.size).reshape(got.shape)
    return (np.asarray(got, np.float64) > allowed) & ~excused


INVARIANTS = (
    Invariant("rstd_positive", "rstd > 0", "forward", "rstd", _not_positive),
    Invariant("rstd_limited", "rstd <= 1 / sqrt(eps)", "forward", "rstd", _above_limit),
)
