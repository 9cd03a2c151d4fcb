"""The certified LayerNorm: three tiers, each for the elements that the one before leaves open.

Forward, over rows of n elements:
    mean = sum(x) / n,   rstd = (sum((x - mean)^2) / n + eps)^(-1/2),
    y = (x - mean) * rstd * weight + bias.
Backward, with t = dy * weight and xhat = (x - mean) * rstd:
    dx = rstd * (t - mean(t) - xhat * mean(t * xhat)),
    dweight = sum over rows of dy * xhat,   dbias = sum over rows of dy.

Where float32 holds x and dy, `float64` answers first, with one radius for each row of y and dx.
Elements that stay open go on to double-double and then to integers (`refinement`), and so do rows,
dweight and dbias whose radius is more than _POOR float32 ulp of their largest element. float64
inputs, and questions about float64, begin with double-double.

Special values follow the extended reals, and NaN stands for "undefined":
- a NaN in a row, or both infinities: mean, rstd and y of the row are NaN; with infinities of one
  sign the mean is that infinity, rstd and y are NaN (the variance is undefined);
- eps = 0 and a variance of 0: rstd is +inf, and everything that multiplies it (y, dx, dweight) is
  NaN;
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

from refkernels.arithmetic import formats, small, tiers
from refkernels.arithmetic.blocks import BLOCK, each_block
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.ladder import Draft, Indices, Open, climb
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify, Question
from refkernels.kernels.rows import array_float64, double_double, float64
from refkernels.kernels.rows.screening import screen_of
from refkernels.layernorm_ref.arguments import (
    NormalizedShape,
    RowProblem,
    as_float32,
    prepare,
    widened,
)
from refkernels.layernorm_ref.refinement import (
    COLUMNS,
    Columns,
    Mask,
    Records,
    Refinement,
    extended_sum,
    mean,
    records_of,
    rstd,
    tame,
)

Values = npt.NDArray[np.float64]
Drafts = dict[str, Draft]
_MANY = 32  # blocks: where there would be more, they are longer, so that threads share fewer pages
_POOR = 2.0**-16  # ulp: far below the resolution of a reported ULP error
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
    """Bounds, condition numbers or a plain algorithm's answers, in the form of Forward."""

    y: npt.NDArray[Any]
    mean: npt.NDArray[Any]
    rstd: npt.NDArray[Any]


class BackwardArrays(NamedTuple):
    """Bounds, condition numbers or a plain algorithm's answers, in the form of Backward."""

    dx: npt.NDArray[Any]
    dweight: npt.NDArray[Any]
    dbias: npt.NDArray[Any]


class Statistics(NamedTuple):
    """The rows' mean and rstd, flat, as sharp as the question "enclosure" makes them."""

    mean: Enclosure
    rstd: Enclosure

    def of(self, rows: slice) -> "Statistics":
        """The statistics of some rows."""
        if rows == slice(0, self.mean.size):
            return self
        return Statistics(self.mean[rows], self.rstd[rows])


Answer = TypeVar("Answer", Forward, Backward)


@dataclass(frozen=True)
class Solved(Generic[Answer]):
    """The answer to a problem, with the statistics of its rows from the same pass."""

    problem: RowProblem
    answer: Answer
    find_statistics: Callable[[], Statistics]

    @cached_property
    def statistics(self) -> Statistics:
        with tiers.counted():  # not counted: they are not part of the answer
            return self.find_statistics()


@with_default_fenv
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
    binary64 number >= 0, taken exactly. The variance is the biased one (divided by n).
    Returns Forward(y, mean, rstd) of Enclosures; mean and rstd have x's leading shape. The exact
    values lie inside for any finite input. Radii for ordinary rows: about 2^-100 of the value for
    float64 x; else one for each row of y, about 2^-47 of its largest element.
    The bound of kernels is `forward_bound`.
    Raises TypeError for other dtypes, ValueError for shapes, eps and questions that do not fit.
    Source: Ba, Kiros and Hinton (2016), arXiv:1607.06450.
    """
    question = Question.parse(certify)
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape)
    return solve_forward(problem, question).answer


def solve_forward(problem: RowProblem, question: Question = _ENCLOSURE) -> Solved[Forward]:
    """`forward` of a problem."""
    affine = problem.weight, problem.bias, problem.eps
    if not (_first_tier_helps(problem, question) and _all_tame(*affine)):
        return _refined(problem, question, "y", _forward)
    height, n = problem.x.shape
    hi, rows = np.empty((height, n)), np.zeros(height, float64.STATISTICS)
    radius, top, doubts = np.zeros((3, height))
    step, screen = max(1, BLOCK // n), screen_of(question)
    for chunk in _chunks(problem, step):
        out = tuple(part[chunk] for part in (rows, hi, radius, top, doubts))
        arguments = as_float32(problem.x[chunk]), problem.weight, problem.bias, problem.eps
        count = len(hi[chunk])
        fallback, kernel = array_float64.normalise_rows, float64.normalise_rows
        if small.allowance.covers(fallback, hi[chunk].size, array_float64.steps(n), kernel=kernel):
            fallback(*arguments, screen, out)
            continue
        block = max(step, min(4 * step, count // _MANY))
        each_block(kernel, count, *arguments, screen, out, block=block)
    unsafe = (rows["state"] == float64.NEXT_TIER) | _poor(radius, top, question)
    y, left = _rows(problem, hi, radius, question, unsafe, doubts)
    numbers, open_numbers = _row_numbers(problem, rows, question)
    answers = _settled(problem, {"y": y, **numbers}, {"y": left, **open_numbers}, question)
    return Solved(problem, _forward(problem, answers), lambda: _statistics(problem, rows))


@with_default_fenv
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
    """dx = rstd (g - mean g - xhat mean(g xhat)), dweight = sum of dy xhat, dbias = sum of dy, with
    xhat = (x - mean) rstd and g = dy weight, sums over rows: the gradients of sum(dy * y).

    Arguments as for `forward`; dy has x's shape. No gradient depends on bias, which is accepted
    so that forward and backward can be called alike. Where weight or bias is None, dweight and
    dbias are the gradients at weight = 1, bias = 0. Exact zeros of dx have radius 0 with
    certify=("rounding", format).
    Returns Backward(dx, dweight, dbias) of Enclosures. The bound of kernels is `backward_bound`.
    Otherwise as `forward`.
    """
    question = Question.parse(certify)
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape, dy=dy)
    return solve_backward(problem, question).answer


def solve_backward(problem: RowProblem, question: Question = _ENCLOSURE) -> Solved[Backward]:
    """`backward` of a problem."""
    if not (_first_tier_helps(problem, question) and _all_tame(problem.weight, problem.eps)):
        return _refined(problem, question, "dx", _backward)
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
    unsafe = (rows["state"] == float64.NEXT_TIER) | _poor(radius, top, question)
    dx, left = _rows(problem, hi, radius, question, unsafe, doubts)
    gradients, left_of_columns = _parameter_gradients(rows["state"], rows["r"], question, parts)
    known = _settled(problem, {"dx": dx, **gradients}, {"dx": left, **left_of_columns}, question)
    return Solved(problem, _backward(problem, known), lambda: _statistics(problem, rows))


def _first_tier_helps(problem: RowProblem, question: Question) -> bool:
    narrow = question.kind == "enclosure" or question.format.p <= formats.BINARY32.p
    return problem.narrow and narrow


def _all_tame(*values: Any) -> bool:
    return all(tame(np.asarray(value, np.float64)).all() for value in values)


def _chunks(problem: RowProblem, step: int) -> Iterator[slice]:
    """All rows at once where nothing needs a copy, else slices of a few blocks of `step` rows."""
    height, n = problem.x.shape
    arrays = [problem.x] if problem.dy is None else [problem.x, problem.dy]
    size = max(1, 4 * BLOCK // (step * n)) * step
    if all(a.dtype == np.float32 and a.flags.c_contiguous for a in arrays):
        size = max(height, 1)
    return (slice(at, min(at + size, height)) for at in range(0, height, size))


def _poor(radius: Values, top: Values, question: Question) -> Mask:
    """Where a radius is too wide beside numbers <= top: more than _POOR ulp, or a subnormal's. This
    makes a certified rounding as sharp as an enclosure, so bounds and condition numbers may be
    computed from it. The question "ulp" sets its own sharpness."""
    if question.kind == "ulp":
        return np.zeros(radius.shape, np.bool_)
    limit: Mask = np.greater(radius, _POOR * 2.0**-24 * top)
    return limit


def _rows(
    problem: RowProblem,
    hi: Values,
    radius: Values,
    question: Question,
    unsafe: Mask,
    doubts: Values,
) -> tuple[Draft, Indices]:
    """A draft (rows, n) and its open elements: unsafe rows as a whole, and elsewhere the elements
    of doubtful rows that the question leaves open, some rows at a time."""
    draft = Draft(hi, 0.0, radius[:, None])
    doubtful = np.flatnonzero(unsafe | (doubts > 0.0))
    open_places = [np.empty(0, np.intp)]
    for batch in problem.batches(doubtful.size):
        rows = doubtful[batch]
        marks = question.undecided(draft.at(rows)) | unsafe[rows, None]
        at, columns = np.divmod(np.flatnonzero(marks), hi.shape[1])  # np.nonzero is far slower
        open_places.append(rows[at] * hi.shape[1] + columns)
    return draft, np.concatenate(open_places)


def _row_numbers(problem: RowProblem, rows: Records, question: Question) -> tuple[Drafts, Open]:
    """mean and rstd by float64: mean = c + delta, or the extended sum of a row that is not
    finite."""
    special = np.flatnonzero(rows["state"] == float64.NOT_FINITE)
    with np.errstate(invalid="ignore"):
        high, low = two_sum.py_func(rows["c"], rows["delta"])
    high[special] = [extended_sum(widened(problem.x[i])) for i in special]
    low[special] = 0.0
    wide = rows["mean_error"].copy()
    wide[special] = 0.0
    hi = np.where(rows["state"] <= float64.CONSTANT, rows["r"], np.nan)
    radius = np.where(np.isfinite(hi), hi, 0.0) * rows["r_error"] * float64.SLACK
    drafts = {"mean": Draft(high, low, wide), "rstd": Draft(hi, 0.0, radius)}
    unsafe = rows["state"] == float64.NEXT_TIER
    marks = {name: unsafe | question.undecided(draft.enclosure()) for name, draft in drafts.items()}
    marks["rstd"] |= _poor(radius, np.abs(hi), question)
    return drafts, {name: np.flatnonzero(draft) for name, draft in marks.items()}


def _parameter_gradients(
    state: Records, r: Values, question: Question, parts: Values
) -> tuple[Drafts, Open]:
    """dweight and dbias from (2, 3, n): their hi, lo and radius."""
    if ((state == float64.NOT_FINITE) | ((state == float64.CONSTANT) & np.isinf(r))).any():
        parts[0] = np.array([np.nan, 0.0, 0.0])[:, None]
        special = np.zeros(parts.shape[2], np.bool_)
    else:
        special = ~np.isfinite(parts[0]).all(axis=0) | (state == float64.NEXT_TIER).any()
    drafts, left = {}, {}
    unsafe = special, ~np.isfinite(parts[1]).all(axis=0)
    for name, part, mask in zip(COLUMNS, parts, unsafe, strict=True):
        part[:, mask] = 0.0
        drafts[name] = Draft(*part)
        mask |= question.undecided(drafts[name].enclosure())
        top = np.max(np.abs(part[0]), initial=0.0)
        left[name] = np.flatnonzero(mask | _poor(part[2], top, question))
    return drafts, left


def _settled(
    problem: RowProblem,
    drafts: Drafts,
    left: Open,
    question: Question,
    first: str = "float64",
    records: Records | None = None,
) -> dict[str, Enclosure]:
    """The answers, their open elements refined by the tiers after the first."""
    below = Refinement(problem, question, records)
    climb(drafts, left, first, below.steps(first), below.undecided)
    return {name: draft.enclosure() for name, draft in drafts.items()}


def _refined(
    problem: RowProblem, question: Question, name: str, named: Callable[..., Answer]
) -> Solved[Answer]:
    """The answer from the tiers after the first. `name`: the output that has whole rows."""
    height, n = problem.x.shape
    records, below = np.zeros(height, double_double.STATISTICS), Refinement(problem, question)
    draft, open_places = Draft(np.empty((height, n))), [np.empty(0, np.intp)]
    for chunk in problem.chunks():
        x = widened(problem.x[chunk])
        records[chunk] = records_of(x, problem.eps)
        enclosure = below.whole_rows(name, chunk, x, records[chunk])
        draft.put(chunk, enclosure)
        open_places.append(chunk.start * n + np.flatnonzero(below.undecided(enclosure)))
    row_drafts, left = {name: draft}, {name: np.concatenate(open_places)}
    if name == "y":
        others = {"mean": mean(records), "rstd": rstd(records)}
    else:
        all_columns = dict.fromkeys(COLUMNS, np.arange(n))
        others = Columns(problem, records).double_double(question, all_columns)
    drafts, left_of_others = _begun(others, below)
    options = question, "double_double", records
    answer = named(problem, _settled(problem, row_drafts | drafts, left | left_of_others, *options))
    return Solved(problem, answer, lambda: _refined_statistics(problem, records))


def _begun(enclosures: dict[str, Enclosure], below: Refinement) -> tuple[Drafts, Open]:
    """Drafts of double-double's results, and their open elements."""
    left = {
        name: np.flatnonzero(below.undecided(enclosure)) for name, enclosure in enclosures.items()
    }
    return {name: Draft.of(enclosure) for name, enclosure in enclosures.items()}, left


def _statistics(problem: RowProblem, rows: Records) -> Statistics:
    drafts, left = _row_numbers(problem, rows, _ENCLOSURE)
    return Statistics(**_settled(problem, drafts, left, _ENCLOSURE))


def _refined_statistics(problem: RowProblem, records: Records) -> Statistics:
    enclosures = {"mean": mean(records), "rstd": rstd(records)}
    drafts, left = _begun(enclosures, Refinement(problem, _ENCLOSURE))
    return Statistics(**_settled(problem, drafts, left, _ENCLOSURE, "double_double"))


def _forward(problem: RowProblem, answers: dict[str, Enclosure]) -> Forward:
    y = answers["y"].reshape(problem.shape)
    return Forward(y, *(answers[name].reshape(problem.leading) for name in ("mean", "rstd")))


def _backward(problem: RowProblem, answers: dict[str, Enclosure]) -> Backward:
    dx = answers["dx"].reshape(problem.shape)
    return Backward(dx, *(answers[name].reshape(problem.normalized) for name in COLUMNS))
