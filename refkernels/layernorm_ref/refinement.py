"""The tiers below the first: double-double, and integers for what that cannot hold or decide.

`RowsRefined` answers for some rows (mean, rstd, y, dx), `ColumnsRefined` for some columns of sums
over all rows (dweight, dbias). Each takes a mask of the elements that are wanted and tells `tiers`
which of them either tier answered; the others are unspecified.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import small, tiers
from refkernels.arithmetic.blocks import BLOCK, each_block, read_only
from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.arithmetic.interpreted import as_records, interpreted
from refkernels.arithmetic.question import Question
from refkernels.kernels.rows import double_double, exact
from refkernels.layernorm_ref.arguments import Problem, Rows, widened

Statistics = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
_COLUMN_ELEMENTS = 2**20  # of x and dy, as float64, at a time
_INTERPRETED = 64  # elements of a twin in NumPy that take as long as one by Python itself


class RowsRefined:
    """The rows of a problem at an index (a slice or numbers)."""

    def __init__(self, problem: Problem, rows: slice | Indices) -> None:
        self.x = widened(problem.x[rows])
        self.dy = None if problem.dy is None else widened(problem.dy[rows])
        self.weight, self.bias, self.eps = problem.weight, problem.bias, problem.eps
        self.statistics = statistics(self.x, problem.eps)
        self.unsafe = self.statistics["state"] == double_double.NEEDS_EXACT
        self.undefined = undefined(self.statistics)
        self._made: dict[int, exact.Row] = {}

    def _exact(self, i: int) -> exact.Row:
        if i not in self._made:
            self._made[i] = exact.Row(self.x[i], self.eps)
        return self._made[i]

    def mean(self, question: Question, wanted: Mask) -> Enclosure:
        """The means, flat; `wanted` is flat too."""
        rows = self.statistics
        result = trusted(rows["mean_hi"], rows["mean_lo"], rows["delta"])
        return _replaced(
            result, self.unsafe, question, wanted, lambda i: exact.mean(self._exact(i))
        )

    def rstd(self, question: Question, wanted: Mask) -> Enclosure:
        """The reciprocal standard deviations, flat; `wanted` is flat too."""
        rows = self.statistics
        known = (rows["state"] <= double_double.CONSTANT) & np.isfinite(rows["r_hi"])
        hi = np.where(self.unsafe, np.nan, rows["r_hi"])
        error = np.where(known, rows["r_error"], 0.0)
        radius = np.where(known, rows["r_hi"], 0.0) * error * double_double.SLACK
        result = trusted(hi, np.where(known, rows["r_lo"], 0.0), radius)
        return _replaced(
            result, self.unsafe, question, wanted, lambda i: exact.rstd(self._exact(i), question)
        )

    def y(self, question: Question, wanted: Mask) -> Enclosure:
        """y of the rows."""
        weight, bias = self.weight, self.bias
        is_tame = bool(tame(weight).all() and tame(bias).all())
        unsafe = (self.unsafe | (not is_tame)) & ~self.undefined
        parts = self._blank(self.undefined)
        if is_tame:
            safe = self._only(~unsafe & ~self.undefined)
            _each_row(double_double.normalised, self.x, weight, bias, safe, tuple(parts))
        return _by_row(
            trusted(*parts),
            unsafe,
            question,
            wanted,
            lambda i, columns: exact.y(self._exact(i), columns, weight, bias, question),
        )

    def dx(self, question: Question, wanted: Mask) -> Enclosure:
        """dx of the rows."""
        dy, weight = self.dy, self.weight
        assert dy is not None
        lost = self.undefined | ~np.isfinite(dy).all(axis=1) | ~np.isfinite(weight).all()
        is_tame = tame(dy).all(axis=1) & tame(weight).all()
        unsafe = (self.unsafe | ~is_tame) & ~lost
        parts = self._blank(lost)
        safe = self._only(~unsafe & ~lost)
        _each_row(double_double.input_gradient, self.x, dy, weight, safe, tuple(parts))
        return _by_row(
            trusted(*parts),
            unsafe,
            question,
            wanted,
            lambda i, columns: exact.input_gradient(
                self._exact(i), columns, dy[i], weight, question
            ),
        )

    def _blank(self, lost: Mask) -> Rows:
        """hi, lo, radius of the rows, with NaN where they are lost."""
        parts = np.zeros((3, *self.x.shape))
        parts[0, lost] = np.nan
        return parts

    def _only(self, kept: Mask) -> Statistics:
        """The statistics with all other rows marked, so that kernels leave them alone."""
        chosen = self.statistics.copy()
        chosen["state"][~kept] = double_double.NEEDS_EXACT
        return chosen


class ColumnsRefined:
    """Sums over all rows of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        height = problem.x.shape[0]
        self.statistics = np.zeros(height, double_double.STATISTICS)
        for chunk in problem.chunks():
            self.statistics[chunk] = statistics(widened(problem.x[chunk]), problem.eps)
        self.unsafe = bool((self.statistics["state"] == double_double.NEEDS_EXACT).any())
        self.undefined = bool(undefined(self.statistics).any())
        self._made: dict[int, exact.Row] = {}

    def _exact(self, i: int) -> exact.Row:
        if i not in self._made:
            self._made[i] = exact.Row(widened(self.problem.x[i]), self.problem.eps)
        return self._made[i]

    def gradients(self, question: Question, weight: Indices, bias: Indices) -> list[Enclosure]:
        """dweight and dbias in the columns wanted of each."""
        found = []
        for columns, weights in ((weight, True), (bias, False)):
            step = max(1, _COLUMN_ELEMENTS // max(len(self.statistics), 1))
            if not self.problem.narrow:
                step = max(columns.size, 1)  # nothing to widen
            parts = [
                self._columns(question, columns[at : at + step], weights)
                for at in range(0, columns.size, step)
            ]
            found.append(joined(parts))
        return found

    def _columns(self, question: Question, columns: Indices, weights: bool) -> Enclosure:
        every = columns.size == self.problem.x.shape[1]
        at: Any = slice(None) if every else columns
        x, dy = widened(self.problem.x[:, at]), widened(self.problem.cotangent[:, at])
        finite, is_tame = np.all(np.isfinite(dy), axis=0), np.all(tame(dy), axis=0)
        weight_parts, bias_parts = np.zeros((2, 3, columns.size))
        calm = dy if is_tame.all() else read_only(np.where(is_tame, dy, 0.0))
        arguments = x, calm, self.statistics, weight_parts, bias_parts
        block = double_double.COLUMNS
        each_block(double_double.parameter_gradients, columns.size, *arguments, block=block)
        if weights:
            return self._dweight(question, weight_parts, columns, dy, finite, is_tame)
        result = _settled(
            trusted(*bias_parts), ~is_tame & finite, question, lambda c: _column_sums(dy, c)
        )
        return _overridden(result, np.flatnonzero(~finite), lambda j: extended_sum(dy[:, j]))

    def _dweight(
        self,
        question: Question,
        parts: Rows,
        columns: Indices,
        dy: Rows,
        finite: Mask,
        is_tame: Mask,
    ) -> Enclosure:
        if self.undefined:
            tiers.answered("double_double", columns.size)
            return Enclosure(np.full(columns.size, np.nan))
        height = len(self.statistics)

        def exactly(at: Indices) -> Enclosure:
            every = [self._exact(i) for i in range(height)]
            if any(row.radicand == 0 for row in every):
                return Enclosure(np.full(at.size, np.nan))
            return exact.weight_gradient(every, columns[at].tolist(), dy[:, at], question)

        def extended(at: int) -> float:
            rows = [self._exact(i) for i in range(height)]
            if any(row.radicand == 0 for row in rows):
                return float("nan")
            signs = [float(np.sign(row.deviations[columns[at]])) for row in rows]
            with np.errstate(invalid="ignore"):
                return extended_sum(dy[:, at] * np.array(signs))

        hard = (~is_tame | self.unsafe) & finite
        result = _settled(trusted(*parts), hard, question, exactly)
        return _overridden(result, np.flatnonzero(~finite), extended)


def statistics(x: Rows, eps: float) -> Statistics:
    """One `double_double.STATISTICS` record a row."""
    rows = np.zeros(x.shape[0], double_double.STATISTICS)
    _each_row(double_double.row_statistics, x, eps, rows)
    return rows


def _each_row(kernel: Callable[..., None], x: Rows, *arguments: Any) -> None:
    """kernel(first, last, x, *arguments) for all rows; a question often leaves few of them."""
    if not small.allowance.covers(kernel, _INTERPRETED * x.size, kernel=kernel):
        return each_block(kernel, len(x), x, *arguments, block=rows_of_block(x))
    with np.errstate(all="ignore"):
        interpreted(kernel)(0, len(x), x, *(as_records(part) for part in arguments))


def rows_of_block(x: Rows) -> int:
    """How many rows a thread takes at a time."""
    return max(1, BLOCK // (4 * x.shape[1]))


def undefined(rows: Statistics) -> Mask:
    """Rows whose xhat is NaN: not finite, or 0 * inf."""
    infinite = (rows["state"] == double_double.CONSTANT) & np.isinf(rows["r_hi"])
    return (rows["state"] == double_double.NOT_FINITE) | infinite


def tame(values: Rows) -> Mask:
    """0, or of a magnitude that the tiers in floating point allow."""
    size = np.abs(values)
    allowed = (size >= double_double.SMALLEST) & (size <= double_double.LARGEST)
    return (values == 0.0) | allowed


def _replaced(
    result: Enclosure,
    unsafe: Mask,
    question: Question,
    wanted: Mask,
    exactly: Callable[[int], Enclosure],
) -> Enclosure:
    """`result`, flat, with unsafe elements, and those that stay undecided, done exactly."""
    hard = np.flatnonzero((question.undecided(result) | unsafe) & wanted)
    _tell(int(np.count_nonzero(wanted)), hard.size)
    return result.replace(hard, joined([exactly(int(i)) for i in hard])) if hard.size else result


def _tell(wanted: int, exactly: int) -> None:
    tiers.answered("double_double", wanted - exactly)
    tiers.answered("exact", exactly)


def joined(parts: list[Enclosure]) -> Enclosure:
    """Flat Enclosures, one after the other."""
    if not parts:
        return Enclosure(np.empty(0))
    names = ("hi", "lo", "radius", "scale")
    return trusted(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _by_row(
    result: Enclosure,
    unsafe: Mask,
    question: Question,
    wanted: Mask,
    exactly: Callable[[int, list[int]], Enclosure],
) -> Enclosure:
    """`result` (rows, n) with unsafe rows, and elements that stay undecided, done exactly."""
    hard = (question.undecided(result) | unsafe[:, None]) & wanted
    _tell(int(np.count_nonzero(wanted)), int(np.count_nonzero(hard)))
    flat, parts = [], []
    for i in np.flatnonzero(hard.any(axis=1)):
        columns = np.flatnonzero(hard[i])
        flat.append(i * result.shape[1] + columns)
        parts.append(exactly(int(i), columns.tolist()))
    return result.replace(np.concatenate(flat), joined(parts)) if parts else result


def _settled(
    result: Enclosure, unsafe: Mask, question: Question, exactly: Callable[[Indices], Enclosure]
) -> Enclosure:
    """`result`, flat, as `_replaced` with all elements wanted."""
    hard = np.flatnonzero(unsafe | question.undecided(result))
    _tell(result.size, hard.size)
    return result.replace(hard, exactly(hard)) if hard.size else result


def _column_sums(dy: Rows, columns: Indices) -> Enclosure:
    return exact.bias_gradient(dy[:, columns])


def _overridden(result: Enclosure, wanted: Indices, value: Callable[[int], float]) -> Enclosure:
    if not wanted.size:
        return result
    return result.replace(wanted, Enclosure(np.array([value(int(j)) for j in wanted])))


def extended_sum(values: Rows) -> float:
    """The sum of values of which some are infinite or NaN."""
    special = values[~np.isfinite(values)]
    with np.errstate(invalid="ignore"):
        return float(np.sum(special))
