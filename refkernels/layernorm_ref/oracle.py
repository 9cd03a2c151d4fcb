"""The certified LayerNorm: three tiers, each for what the one before leaves open.

Forward, over rows of n elements:
    mean = sum(x) / n,   rstd = (sum((x - mean)^2) / n + eps)^(-1/2),
    y = (x - mean) * rstd * weight + bias.
Backward, with t = dy * weight and xhat = (x - mean) * rstd:
    dx = rstd * (t - mean(t) - xhat * mean(t * xhat)),
    dweight = sum over rows of dy * xhat,   dbias = sum over rows of dy.

Where float32 holds x and dy, `float64` answers first, with one radius for each row of y and dx.
What the question leaves open goes on to double-double and then to integers (`refinement`), and so
do rows, dweight and dbias whose radius is more than _POOR float32 ulp of their largest element.
float64 inputs, and questions about float64, begin with double-double.

Special values follow the extended reals, and NaN stands for "undefined":
- a NaN in a row, or both infinities: mean, rstd and y of the row are NaN; with infinities of one
  sign the mean is that infinity, rstd and y are NaN (the variance is undefined);
- eps = 0 and a variance of 0: rstd is +inf, and whatever multiplies it (y, dx, dweight) NaN;
- an infinite or NaN weight or bias: y is sign(d) * weight + bias, dx of every row is NaN;
- an infinite or NaN dy: dx of its row is NaN; dweight and dbias are the column's extended sum;
- a row whose xhat is undefined makes dx of the row and the whole of dweight NaN.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, tiers
from refkernels.arithmetic.blocks import BLOCK, each_block
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.arithmetic.mode import in_default_mode
from refkernels.arithmetic.question import Certify, Question
from refkernels.kernels.rows import float64
from refkernels.kernels.rows.screening import screen_of
from refkernels.layernorm_ref.arguments import (
    NormalizedShape,
    Problem,
    as_float32,
    prepare,
    widened,
)
from refkernels.layernorm_ref.draft import Draft
from refkernels.layernorm_ref.refinement import (
    ColumnsRefined,
    Mask,
    RowsRefined,
    extended_sum,
    joined,
    tame,
)

Values = npt.NDArray[np.float64]
Records = npt.NDArray[Any]
_MANY = 32  # blocks; where there are more they are made longer, so that threads share fewer pages
_POOR = 2.0**-16  # ulp: far below what an ULP error is told to
_ENCLOSURE = Question("enclosure")


class Forward(NamedTuple):
    """y has x's shape; mean and rstd have x's leading shape."""

    y: Enclosure
    mean: Enclosure
    rstd: Enclosure


class Backward(NamedTuple):
    """dx has x's shape; dweight and dbias have the normalised shape."""

    dx: Enclosure
    dweight: Enclosure
    dbias: Enclosure


class ForwardArrays(NamedTuple):
    """Bounds, condition numbers or a plain algorithm's answers, as Forward has its Enclosures."""

    y: npt.NDArray[Any]
    mean: npt.NDArray[Any]
    rstd: npt.NDArray[Any]


class BackwardArrays(NamedTuple):
    """The same for Backward."""

    dx: npt.NDArray[Any]
    dweight: npt.NDArray[Any]
    dbias: npt.NDArray[Any]


class Statistics(NamedTuple):
    """The rows' statistics, flat, as sharp as the question "enclosure" has them."""

    mean: Enclosure
    rstd: Enclosure

    def of(self, rows: slice) -> "Statistics":
        """Of some rows."""
        if rows == slice(0, self.mean.size):
            return self
        return Statistics(self.mean[rows], self.rstd[rows])


Answer = TypeVar("Answer", Forward, Backward)


@dataclass(frozen=True)
class Solved(Generic[Answer]):
    """The answer to a problem, and from the same pass the statistics of its rows."""

    problem: Problem
    answer: Answer
    find_statistics: Callable[[], Statistics]

    @cached_property
    def statistics(self) -> Statistics:
        with tiers.counted():  # to itself: they are no part of the answer
            return self.find_statistics()


@in_default_mode
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
    values lie inside for any finite input. Radii for ordinary rows: about 2^-100 of the value for
    float64 x; else one for each row of y, about 2^-47 of its largest element.
    Raises TypeError for other dtypes, ValueError for shapes, eps and questions that do not fit.
    """
    question = Question.parse(certify)
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape)
    return solve_forward(problem, question).answer


def solve_forward(problem: Problem, question: Question = _ENCLOSURE) -> Solved[Forward]:
    """`forward` of a problem."""
    numbers = problem.weight, problem.bias, problem.eps
    if not (_first_tier_helps(problem, question) and _all_tame(*numbers)):
        return _refined_forward(problem, question)
    height, n = problem.x.shape
    hi, rows = np.empty((height, n)), np.zeros(height, float64.STATISTICS)
    radius, top, doubts = np.zeros((3, height))
    step, screen = max(1, BLOCK // n), screen_of(question)
    for chunk in _chunks(problem, step):
        out = tuple(part[chunk] for part in (rows, hi, radius, top, doubts))
        arguments = as_float32(problem.x[chunk]), problem.weight, problem.bias, problem.eps
        many = len(hi[chunk])
        block = max(step, min(4 * step, many // _MANY))
        each_block(float64.normalise_rows, many, *arguments, screen, out, block=block)
    tiers.answered("float64", hi.size + 2 * height)
    unsafe = (rows["state"] == float64.NEXT_TIER) | _poor(radius, top, question)
    y = Draft(hi, radius)
    _settle(y, "y", problem, question, unsafe, doubts)
    mean, rstd = _mean(problem, rows, question), _rstd(problem, rows, question)
    return Solved(problem, _forward(problem, y, mean, rstd), lambda: _statistics(problem, rows))


@in_default_mode
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
    return solve_backward(problem, question).answer


def solve_backward(problem: Problem, question: Question = _ENCLOSURE) -> Solved[Backward]:
    """`backward` of a problem."""
    if not (_first_tier_helps(problem, question) and _all_tame(problem.weight, problem.eps)):
        return _refined_backward(problem, question)
    height, n = problem.x.shape
    hi, rows = np.empty((height, n)), np.zeros(height, float64.STATISTICS)
    radius, top, doubts = np.zeros((3, height))
    step, sums = float64.block_rows(height), float64.empty_sums(height, n)
    screen = screen_of(question)
    for chunk in _chunks(problem, step):
        out = tuple(part[chunk] for part in (rows, hi, radius, top, doubts))
        narrow = as_float32(problem.x[chunk]), as_float32(problem.cotangent[chunk])
        arguments = *narrow, problem.weight, problem.eps, step, screen, out
        blocks = sums[chunk.start // step :]
        each_block(float64.differentiate_rows, len(hi[chunk]), *arguments, blocks, block=step)
    parts = np.zeros((2, 3, n))
    float64.column_sums(sums, height, *parts)
    tiers.answered("float64", hi.size + 2 * n)
    unsafe = (rows["state"] == float64.NEXT_TIER) | _poor(radius, top, question)
    dx = Draft(hi, radius)
    _settle(dx, "dx", problem, question, unsafe, doubts)
    answer = _backward(problem, dx, *_parameter_gradients(problem, rows, question, parts))
    return Solved(problem, answer, lambda: _statistics(problem, rows))


def _first_tier_helps(problem: Problem, question: Question) -> bool:
    narrow = question.kind == "enclosure" or question.format.p <= formats.BINARY32.p
    return problem.narrow and narrow


def _all_tame(*values: Any) -> bool:
    return all(tame(np.asarray(value, np.float64)).all() for value in values)


def _chunks(problem: Problem, step: int) -> Iterator[slice]:
    """All rows at once where nothing must be copied, else a few blocks of `step` rows."""
    height, n = problem.x.shape
    arrays = [problem.x] if problem.dy is None else [problem.x, problem.dy]
    size = max(1, 4 * BLOCK // (step * n)) * step
    if all(a.dtype == np.float32 and a.flags.c_contiguous for a in arrays):
        size = max(height, 1)
    return (slice(at, min(at + size, height)) for at in range(0, height, size))


def _poor(radius: Values, top: Values, question: Question) -> Mask:
    """Where a radius is too wide to be left beside numbers <= top: more than _POOR ulp, or a
    subnormal's. So a certified rounding is as sharp as an enclosure besides, and bounds and
    condition numbers may be read from it; "ulp" says itself how sharp it must be."""
    if question.kind == "ulp":
        return np.zeros(radius.shape, np.bool_)
    limit: Mask = np.greater(radius, _POOR * 2.0**-24 * top)
    return limit


def _statistics(problem: Problem, rows: Records) -> Statistics:
    return Statistics(_mean(problem, rows, _ENCLOSURE), _rstd(problem, rows, _ENCLOSURE))


def _mean(problem: Problem, rows: Records, question: Question) -> Enclosure:
    """The means: c + delta, or the extended sum of a row that is not finite."""
    special = np.flatnonzero(rows["state"] == float64.NOT_FINITE)
    with np.errstate(invalid="ignore"):
        hi, lo = two_sum.py_func(rows["c"], rows["delta"])
    hi[special] = [extended_sum(widened(problem.x[i])) for i in special]
    lo[special] = 0.0
    radius = rows["mean_error"].copy()
    radius[special] = 0.0
    result = trusted(hi, lo, radius)
    unsafe = (rows["state"] == float64.NEXT_TIER) | question.undecided(result)
    return _settled_rows(result, "mean", problem, question, unsafe)


def _rstd(problem: Problem, rows: Records, question: Question) -> Enclosure:
    hi = np.where(rows["state"] <= float64.CONSTANT, rows["r"], np.nan)
    radius = np.where(np.isfinite(hi), hi, 0.0) * rows["r_error"] * float64.SLACK
    result = Enclosure(hi, 0.0, radius)
    unsafe = (rows["state"] == float64.NEXT_TIER) | question.undecided(result)
    return _settled_rows(
        result, "rstd", problem, question, unsafe | _poor(radius, np.abs(hi), question)
    )


def _settled_rows(
    result: Enclosure, name: str, problem: Problem, question: Question, unsafe: Mask
) -> Enclosure:
    """The result (one number a row) with the unsafe ones from the tiers below."""
    at = np.flatnonzero(unsafe)
    if not at.size:
        return result
    tiers.answered("float64", -at.size)
    refined = RowsRefined(problem, at)
    return result.replace(at, getattr(refined, name)(question, np.ones(at.size, np.bool_)))


def _settle(
    draft: Draft, name: str, problem: Problem, question: Question, unsafe: Mask, doubts: Values
) -> None:
    """In the draft of a result (rows, n): whole rows that are unsafe, and elsewhere what the
    question leaves open, from the tiers below."""
    doubtful = np.flatnonzero(unsafe | (doubts > 0.0))
    for batch in problem.batches(doubtful.size):
        rows = doubtful[batch]
        wanted = question.undecided(draft.rows(rows)) | unsafe[rows, None]
        held = wanted.any(axis=1)
        rows, wanted = rows[held], wanted[held]
        if not rows.size:
            continue
        at, columns = np.nonzero(wanted)
        tiers.answered("float64", -at.size)
        answers = getattr(RowsRefined(problem, rows), name)(question, wanted)
        draft.put((rows[at], columns), answers[at, columns])


def _parameter_gradients(
    problem: Problem, rows: Records, question: Question, parts: Values
) -> list[Enclosure]:
    """dweight and dbias from (2, 3, n): their hi, lo and radius."""
    n = problem.x.shape[1]
    state, infinite = rows["state"], np.isinf(rows["r"])
    if ((state == float64.NOT_FINITE) | ((state == float64.CONSTANT) & infinite)).any():
        parts[0] = np.array([np.nan, 0.0, 0.0])[:, None]
        special = np.zeros(n, np.bool_)
    else:
        special = ~np.isfinite(parts[0]).all(axis=0) | (state == float64.NEXT_TIER).any()
    unsafe = [special, ~np.isfinite(parts[1]).all(axis=0)]
    found, wanted = [], []
    for part, mask in zip(parts, unsafe, strict=True):
        part[:, mask] = 0.0
        result = trusted(*part)
        top = np.max(np.abs(part[0]), initial=0.0)
        found.append(result)
        wanted.append(
            np.flatnonzero(mask | question.undecided(result) | _poor(part[2], top, question))
        )
    tiers.answered("float64", -sum(at.size for at in wanted))
    if any(at.size for at in wanted):
        refined = ColumnsRefined(problem).gradients(question, *wanted)
        pairs = zip(found, wanted, refined, strict=True)
        found = [result.replace(at, sharper) for result, at, sharper in pairs]
    return found


def _refined_forward(problem: Problem, question: Question) -> Solved[Forward]:
    """Everything by the tiers below the first."""
    height, n = problem.x.shape
    y = Draft(np.empty((height, n)))
    asked: list[Statistics] = []
    known: list[Statistics] = []
    for chunk in problem.chunks():
        refined = RowsRefined(problem, chunk)
        y.put(chunk, refined.y(question, np.ones((len(refined.x), n), np.bool_)))
        asked.append(_refined_statistics(refined, question))
        known.append(_to_themselves(refined))
    answer = _forward(problem, y, *_all_rows(asked))
    return Solved(problem, answer, lambda: _all_rows(known))


def _refined_backward(problem: Problem, question: Question) -> Solved[Backward]:
    height, n = problem.x.shape
    dx = Draft(np.empty((height, n)))
    known: list[Statistics] = []
    for chunk in problem.chunks():
        refined = RowsRefined(problem, chunk)
        dx.put(chunk, refined.dx(question, np.ones((len(refined.x), n), np.bool_)))
        known.append(_to_themselves(refined))
    every = np.arange(n)
    gradients = ColumnsRefined(problem).gradients(question, every, every)
    return Solved(problem, _backward(problem, dx, *gradients), lambda: _all_rows(known))


def _to_themselves(refined: RowsRefined) -> Statistics:
    with tiers.counted():  # they are no part of the answer
        return _refined_statistics(refined, _ENCLOSURE)


def _refined_statistics(refined: RowsRefined, question: Question) -> Statistics:
    every = np.ones(len(refined.x), np.bool_)
    return Statistics(refined.mean(question, every), refined.rstd(question, every))


def _all_rows(parts: list[Statistics]) -> Statistics:
    return Statistics(joined([one.mean for one in parts]), joined([one.rstd for one in parts]))


def _forward(problem: Problem, y: Draft, mean: Enclosure, rstd: Enclosure) -> Forward:
    return Forward(
        y.enclosure(problem.leading, problem.normalized),
        mean.reshape(problem.leading),
        rstd.reshape(problem.leading),
    )


def _backward(problem: Problem, dx: Draft, dweight: Enclosure, dbias: Enclosure) -> Backward:
    return Backward(
        dx.enclosure(problem.leading, problem.normalized),
        dweight.reshape(problem.normalized),
        dbias.reshape(problem.normalized),
    )
