"""Condition numbers and invariants of LayerNorm.

Condition numbers say by how much relative perturbations of the inputs, of size theta in every
element, are amplified in an output, to first order and by the triangle inequality. With
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
few roundings. What is left out, and why: |xhat| <= sqrt(n - 1), sum(xhat) = 0, sum(dx) = 0 and
min(x) <= mean <= max(x) are all broken by harmless rounding.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.layernorm_ref.arguments import NormalizedShape, Problem, prepare, widened
from refkernels.layernorm_ref.bounds import mean_tail, working_format
from refkernels.layernorm_ref.oracle import Backward, Forward, backward, forward
from refkernels.op import Arrays, Invariant

Array = npt.NDArray[np.float64]


def _ratio(amount: Array, value: Array) -> Array:
    value = np.abs(value)
    ratio = np.divide(amount, value, out=np.full_like(amount, np.inf), where=value != 0.0)
    return np.where((amount == 0.0) & (value == 0.0), 1.0, ratio)


def _sensitivity(problem: Problem) -> tuple[Array, Array, Array, Array]:
    """xhat, r, rho and p, rows by columns."""
    exact = forward(problem.x, eps=problem.eps)
    x = widened(problem.x)
    size = np.abs(x)
    r = np.asarray(exact.rstd)[:, None]
    d = (x - np.asarray(exact.mean)[:, None]) - mean_tail(exact.mean)
    xhat = d * r
    rho = r * _mean(np.abs(xhat) * size)
    return xhat, r, rho, r * (size + _mean(size)) + np.abs(xhat) * rho


def _mean(values: Array) -> Array:
    average: Array = np.sum(values, axis=1, keepdims=True) / values.shape[1]
    return average


def forward_condition(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
) -> Forward:
    """Condition numbers of y, mean and rstd (see the module), float64."""
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape)
    with np.errstate(all="ignore"):
        xhat, r, _, p = _sensitivity(problem)
        x = widened(problem.x)
        g, b = np.abs(problem.weight), np.abs(problem.bias)
        exact = forward(problem.x, problem.weight, problem.bias, eps=problem.eps)
        mean = np.asarray(exact.mean)[:, None]
        spread = np.sqrt(_mean(xhat * xhat))  # sigma r: neither overflows nor underflows, as v may
        y = _ratio(g * (p + np.abs(xhat)) + b, np.asarray(exact.y))
        rstd = spread * np.hypot(spread, mean * r)
        constant = np.all(problem.x == problem.x[:, :1], axis=1, keepdims=True)
        return Forward(
            y.reshape(problem.shape),
            _ratio(_mean(np.abs(x)), mean).reshape(problem.leading),
            np.where(constant, 0.0, rstd).reshape(problem.leading),
        )


def backward_condition(
    dy: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
) -> Backward:
    """Condition numbers of dx, dweight and dbias (see the module), float64."""
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape, dy=dy)
    with np.errstate(all="ignore"):
        xhat, r, rho, p = _sensitivity(problem)
        exact = backward(problem.cotangent, problem.x, problem.weight, eps=problem.eps)
        dy = widened(problem.cotangent)
        t = dy * problem.weight
        size, dx = np.abs(t), np.asarray(exact.dx)
        linear = size + _mean(size) + np.abs(xhat) * _mean(np.abs(t * xhat))
        through_x = np.abs(xhat) * _mean(size * p) + p * np.abs(_mean(t * xhat))
        amount = rho * np.abs(dx) + r * (through_x + linear)
        grad = np.abs(dy)
        columns = np.sum(grad * (p + np.abs(xhat)), axis=0)
        dbias = _ratio(np.sum(grad, axis=0), np.asarray(exact.dbias))
        return Backward(
            _ratio(amount, dx).reshape(problem.shape),
            _ratio(columns, np.asarray(exact.dweight)).reshape(problem.normalized),
            dbias.reshape(problem.normalized),
        )


def _overflow_possible(x: npt.NDArray[Any], rows: int) -> npt.NDArray[np.bool_]:
    """Rows that are not finite, or whose sums of squares may overflow the working precision."""
    work = working_format(formats.of(x))
    wide = np.asarray(x, np.float64).reshape(rows, -1)
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
    if eps < 2.0 * working_format(target).min_normal:  # eps itself may be rounded away
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
