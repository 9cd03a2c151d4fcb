"""The certified LayerNorm: the fast tier for what it decides, the exact tier for the rest.

Forward, over rows of n elements:
    mean = sum(x) / n,   rstd = (sum((x - mean)^2) / n + eps)^(-1/2),
    y = (x - mean) * rstd * weight + bias.
Backward, with t = dy * weight and xhat = (x - mean) * rstd:
    dx = rstd * (t - mean(t) - xhat * mean(t * xhat)),
    dweight = sum over rows of dy * xhat,   dbias = sum over rows of dy.

Special values follow the extended reals, and NaN stands for "undefined":
- a NaN in a row, or both infinities: mean, rstd and y of the row are NaN; with infinities of one
  sign the mean is that infinity, rstd and y are NaN (the variance is undefined);
- eps = 0 and a variance of 0: rstd is +inf, and whatever multiplies it (y, dx, dweight) NaN;
- an infinite or NaN weight or bias: y is sign(d) * weight + bias, dx of every row is NaN;
- an infinite or NaN dy: dx of its row is NaN; dweight and dbias are the column's extended sum;
- a row whose xhat is undefined makes dx of the row and the whole of dweight NaN.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.jit import check_subnormals
from refkernels.arithmetic.question import Certify, Question
from refkernels.layernorm_ref import exact, fast
from refkernels.layernorm_ref.arguments import Problem, Rows, prepare

NormalizedShape = int | tuple[int, ...] | None
Statistics = npt.NDArray[Any]
ExactRows = Callable[[int], exact.Row]
Mask = npt.NDArray[np.bool_]


class Forward(NamedTuple):
    """y has x's shape; mean and rstd have x's leading shape."""

    y: Any
    mean: Any
    rstd: Any


class Backward(NamedTuple):
    """dx has x's shape; dweight and dbias have the normalised shape."""

    dx: Any
    dweight: Any
    dbias: Any


def forward(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    certify: Certify = "enclosure",
) -> Forward:
    """y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, with mean and rstd.

    x (..., *normalized_shape); weight, bias of shape normalized_shape, None for 1 and 0; each
    float16, bfloat16, float32 or float64. normalized_shape None means x's last axis. eps is a
    binary64 number >= 0, taken as it is. The variance is the biased one (divided by n).
    Returns Forward(y, mean, rstd) of Enclosures; mean and rstd have x's leading shape. The exact
    values lie inside for any finite input; radii are about 2^-100 of the value for ordinary rows.
    Raises TypeError for other dtypes, ValueError for shapes, eps and questions that do not fit.
    """
    question = Question.parse(certify)
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape)
    rows = row_statistics(problem)
    exact_row = _exact_rows(problem)
    return Forward(
        _y(problem, rows, exact_row, question).reshape(problem.shape),
        _mean(rows, exact_row, question).reshape(problem.leading),
        _rstd(rows, exact_row, question).reshape(problem.leading),
    )


def backward(
    dy: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    certify: Certify = "enclosure",
) -> Backward:
    """The gradients of sum(dy * forward(x, weight, bias).y): see the module for the formulas.

    Arguments as for `forward`; dy has x's shape. No gradient depends on bias, which is accepted
    so that forward and backward can be called alike. Where weight or bias is None, dweight and
    dbias are the gradients at weight = 1, bias = 0. Exact zeros of dx have radius 0 when they are
    asked for with certify=("rounding", format).
    Returns Backward(dx, dweight, dbias) of Enclosures. Raises as `forward` does.
    """
    question = Question.parse(certify)
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape, dy=dy)
    rows = row_statistics(problem)
    exact_row = _exact_rows(problem)
    dweight, dbias = _parameter_gradients(problem, rows, exact_row, question)
    return Backward(
        _dx(problem, rows, exact_row, question).reshape(problem.shape),
        dweight.reshape(problem.normalized),
        dbias.reshape(problem.normalized),
    )


def row_statistics(problem: Problem) -> Statistics:
    """One `fast.STATISTICS` record a row."""
    check_subnormals()
    rows = np.zeros(problem.x.shape[0], fast.STATISTICS)
    fast.row_statistics(problem.x, problem.eps, rows)
    return rows


def _exact_rows(problem: Problem) -> ExactRows:
    """Exact statistics by row number, made once."""
    made: dict[int, exact.Row] = {}

    def row(i: int) -> exact.Row:
        if i not in made:
            made[i] = exact.Row(problem.x[i], problem.eps)
        return made[i]

    return row


def _mean(rows: Statistics, exact_row: ExactRows, question: Question) -> Enclosure:
    result = Enclosure(rows["mean_hi"], rows["mean_lo"], rows["delta"])
    wanted = np.flatnonzero((rows["state"] == fast.NEEDS_EXACT) | question.undecided(result))
    return _replaced(result, wanted, lambda i: exact.mean(exact_row(i)))


def _rstd(rows: Statistics, exact_row: ExactRows, question: Question) -> Enclosure:
    known = (rows["state"] <= fast.CONSTANT) & np.isfinite(rows["r_hi"])
    hi = np.where(rows["state"] == fast.NEEDS_EXACT, np.nan, rows["r_hi"])
    error = np.where(known, rows["r_error"], 0.0)
    radius = np.where(known, rows["r_hi"], 0.0) * error * fast.SLACK
    result = Enclosure(hi, np.where(known, rows["r_lo"], 0.0), radius)
    wanted = np.flatnonzero((rows["state"] == fast.NEEDS_EXACT) | question.undecided(result))
    return _replaced(result, wanted, lambda i: exact.rstd(exact_row(i), question))


def _replaced(
    result: Enclosure, wanted: npt.NDArray[np.intp], exactly: Callable[[int], Enclosure]
) -> Enclosure:
    """`result` with the wanted flat elements, one by one, from the exact tier."""
    if not wanted.size:
        return result
    return result.replace(wanted, _joined([exactly(int(i)) for i in wanted]))


def _joined(parts: list[Enclosure]) -> Enclosure:
    names = ("hi", "lo", "radius", "scale")
    return Enclosure(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _by_row(
    result: Enclosure,
    unsafe: Mask,
    question: Question,
    exactly: Callable[[int, list[int]], Enclosure],
) -> Enclosure:
    """`result` (rows, n) with unsafe rows, and elements that stay undecided, done exactly."""
    wanted = question.undecided(result) | unsafe[:, None]
    flat, parts = [], []
    for i in np.flatnonzero(wanted.any(axis=1)):
        columns = np.flatnonzero(wanted[i])
        flat.append(i * result.shape[1] + columns)
        parts.append(exactly(int(i), columns.tolist()))
    return result.replace(np.concatenate(flat), _joined(parts)) if parts else result


def _undefined(rows: Statistics) -> Mask:
    """Rows whose xhat is NaN: not finite, or 0 * inf."""
    infinite = (rows["state"] == fast.CONSTANT) & np.isinf(rows["r_hi"])
    return (rows["state"] == fast.NOT_FINITE) | infinite


def _blank(problem: Problem, undefined: Mask) -> npt.NDArray[np.float64]:
    """hi, lo, radius for (rows, n), with NaN in the undefined rows."""
    parts = np.zeros((3, *problem.x.shape))
    parts[0, undefined] = np.nan
    return parts


def _y(problem: Problem, rows: Statistics, exact_row: ExactRows, question: Question) -> Enclosure:
    undefined = _undefined(rows)
    tame = bool(_tame(problem.weight).all() and _tame(problem.bias).all())
    unsafe = ((rows["state"] == fast.NEEDS_EXACT) | (not tame)) & ~undefined
    parts = _blank(problem, undefined)
    safe = _only(rows, ~unsafe & ~undefined)
    if tame:
        fast.normalised(problem.x, problem.weight, problem.bias, safe, *parts)
    return _by_row(
        Enclosure(*parts),
        unsafe,
        question,
        lambda i, columns: exact.y(exact_row(i), columns, problem.weight, problem.bias, question),
    )


def _only(rows: Statistics, kept: Mask) -> Statistics:
    """The statistics with all other rows marked, so that kernels leave them alone."""
    chosen = rows.copy()
    chosen["state"][~kept] = fast.NEEDS_EXACT
    return chosen


def _dx(problem: Problem, rows: Statistics, exact_row: ExactRows, question: Question) -> Enclosure:
    dy, weight = problem.cotangent, problem.weight
    undefined = _undefined(rows) | ~np.isfinite(dy).all(axis=1) | ~np.isfinite(weight).all()
    tame = _tame(dy).all(axis=1) & _tame(weight).all()
    unsafe = ((rows["state"] == fast.NEEDS_EXACT) | ~tame) & ~undefined
    parts = _blank(problem, undefined)
    fast.input_gradient(problem.x, dy, weight, _only(rows, ~unsafe & ~undefined), *parts)
    return _by_row(
        Enclosure(*parts),
        unsafe,
        question,
        lambda i, columns: exact.input_gradient(exact_row(i), columns, dy[i], weight, question),
    )


def _tame(values: Rows) -> Mask:
    size = np.abs(values)
    return (values == 0.0) | ((size >= fast.SMALLEST) & (size <= fast.LARGEST))


def _parameter_gradients(
    problem: Problem, rows: Statistics, exact_row: ExactRows, question: Question
) -> tuple[Enclosure, Enclosure]:
    """dweight and dbias, flat."""
    dy = problem.cotangent
    finite, tame = np.all(np.isfinite(dy), axis=0), np.all(_tame(dy), axis=0)
    undefined = _undefined(rows)
    weight_parts, bias_parts = np.zeros((2, 3, dy.shape[1]))
    calm = np.where(tame, dy, 0.0)
    fast.parameter_gradients(problem.x, calm, rows, weight_parts, bias_parts)
    dbias = Enclosure(*bias_parts)
    dbias = _columns(dbias, ~tame & finite, question, lambda c: exact.bias_gradient(dy[:, c]))
    dbias = _overridden(dbias, np.flatnonzero(~finite), lambda j: _extended_sum(dy[:, j]))
    if undefined.any():
        return Enclosure(np.full(dy.shape[1], np.nan)), dbias
    hard: Mask = ~tame | bool((rows["state"] == fast.NEEDS_EXACT).any())

    def exactly(columns: npt.NDArray[np.intp]) -> Enclosure:
        every = [exact_row(i) for i in range(len(rows))]
        if any(row.radicand == 0 for row in every):
            return Enclosure(np.full(columns.size, np.nan))
        return exact.weight_gradient(every, columns.tolist(), dy, question)

    def extended(j: int) -> float:
        if any(exact_row(i).radicand == 0 for i in range(len(rows))):
            return float("nan")
        signs = [float(np.sign(exact_row(i).deviations[j])) for i in range(len(rows))]
        with np.errstate(invalid="ignore"):
            return _extended_sum(dy[:, j] * np.array(signs))

    dweight = _columns(Enclosure(*weight_parts), hard & finite, question, exactly)
    return _overridden(dweight, np.flatnonzero(~finite), extended), dbias


def _columns(
    result: Enclosure,
    unsafe: Mask,
    question: Question,
    exactly: Callable[[npt.NDArray[np.intp]], Enclosure],
) -> Enclosure:
    wanted = np.flatnonzero(unsafe | question.undecided(result))
    return result.replace(wanted, exactly(wanted)) if wanted.size else result


def _overridden(
    result: Enclosure, wanted: npt.NDArray[np.intp], value: Callable[[int], float]
) -> Enclosure:
    if not wanted.size:
        return result
    return result.replace(wanted, Enclosure(np.array([value(int(j)) for j in wanted])))


def _extended_sum(values: npt.NDArray[np.float64]) -> float:
    """The sum of values of which some are infinite or NaN."""
    special = values[~np.isfinite(values)]
    with np.errstate(invalid="ignore"):
        return float(np.sum(special))
