"""The tiers after the first: double-double, and integers where that cannot hold or decide.

Each computes some elements of y, mean, rstd and dx, row by row, and of dweight and dbias, which are
sums over all rows. Numbers that double-double cannot hold get an infinite radius.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import small
from refkernels.arithmetic.arrays import distinct
from refkernels.arithmetic.blocks import BLOCK, each_block, read_only
from refkernels.arithmetic.enclosure import PARTS, Enclosure, trusted
from refkernels.arithmetic.interpreted import as_records, interpreted
from refkernels.arithmetic.ladder import Indices, Open, Step
from refkernels.arithmetic.question import Question
from refkernels.kernels.rows import double_double, exact
from refkernels.layernorm_ref.arguments import RowProblem, Rows, widened

Records = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Enclosures = dict[str, Enclosure]
COLUMNS = ("dweight", "dbias")
_COLUMN_ELEMENTS = 2**20  # elements of x and dy that are widened to float64 at a time
_INTERPRETED = 64  # elements that a NumPy fallback handles while Python handles one


def records_of(x: Rows, eps: float) -> Records:
    """One `double_double.STATISTICS` record for each row."""
    rows = np.zeros(x.shape[0], double_double.STATISTICS)
    _each_row(double_double.row_statistics, x, eps, rows)
    return rows


def mean(rows: Records) -> Enclosure:
    """The means by double-double."""
    return _open_where(_lost(rows), rows["mean_hi"], rows["mean_lo"], rows["delta"])


def rstd(rows: Records) -> Enclosure:
    """rstd by double-double."""
    known = (rows["state"] <= double_double.CONSTANT) & np.isfinite(rows["r_hi"])
    error = np.where(known, rows["r_error"], 0.0)
    radius = np.where(known, rows["r_hi"], 0.0) * error * double_double.SLACK
    low = np.where(known, rows["r_lo"], 0.0)
    return _open_where(_lost(rows), rows["r_hi"], low, radius)


def y(x: Rows, problem: RowProblem, rows: Records) -> Enclosure:
    """y of some rows by double-double, given their records."""
    weight, bias = problem.weight, problem.bias
    defined = ~undefined(rows)
    safe = defined & ~_lost(rows) & tame(weight).all() & tame(bias).all()
    parts = _blank(x, ~defined)
    _each_row(double_double.normalised, x, weight, bias, _only(rows, safe), tuple(parts))
    return _open_where((defined & ~safe)[:, None], *parts)


def dx(x: Rows, dy: Rows, problem: RowProblem, rows: Records) -> Enclosure:
    """dx of some rows by double-double, given their records."""
    weight = problem.weight
    defined = ~undefined(rows) & np.isfinite(dy).all(axis=1) & np.isfinite(weight).all()
    safe = defined & ~_lost(rows) & tame(dy).all(axis=1) & tame(weight).all()
    parts = _blank(x, ~defined)
    _each_row(double_double.input_gradient, x, dy, weight, _only(rows, safe), tuple(parts))
    return _open_where((defined & ~safe)[:, None], *parts)


def _lost(rows: Records) -> Mask:
    mask: Mask = rows["state"] == double_double.NEEDS_EXACT
    return mask


def _blank(x: Rows, undefined: Mask) -> Rows:
    """hi, lo, radius of the rows, with NaN where they are undefined."""
    parts = np.zeros((3, *x.shape))
    parts[0, undefined] = np.nan
    return parts


def _only(rows: Records, wanted: Mask) -> Records:
    """The records with the rows that are not wanted marked, so that kernels leave those alone."""
    chosen = rows.copy()
    chosen["state"][~wanted] = double_double.NEEDS_EXACT
    return chosen


def _open_where(lost: Mask, hi: Rows, lo: Rows, radius: Rows) -> Enclosure:
    if not lost.any():
        return trusted(hi, lo, radius)
    return trusted(np.where(lost, 0.0, hi), np.where(lost, 0.0, lo), np.where(lost, np.inf, radius))


class Refinement:
    """Both tiers, for the elements of a problem that a question leaves open. `records`: those of
    all rows, if known."""

    def __init__(
        self, problem: RowProblem, question: Question, records: Records | None = None
    ) -> None:
        self.problem, self.question, self.records = problem, question, records

    def undecided(self, answer: Enclosure) -> Mask:
        """Where a tier leaves the question open, or marks a number that it cannot hold."""
        return self.question.undecided(answer) | np.isinf(answer.radius)

    def steps(self, first: str) -> list[tuple[str, Step]]:
        """The steps of `ladder.climb` after the first tier."""
        steps: list[tuple[str, Step]] = [
            ("double_double", self.double_double),
            ("exact", self.by_exact),
        ]
        return steps[first == "double_double" :]

    def double_double(self, left: Open) -> Enclosures:
        """A `ladder.Step`: computes whole rows of y and dx, some rows at a time."""
        sums = self._by_columns(left, Columns.double_double)
        places = {name: self._places(name, at) for name, at in left.items() if name not in COLUMNS}
        parts: dict[str, list[Enclosure]] = {name: [] for name in places}
        union = _union([rows for rows, _ in places.values()])
        for batch in self.problem.batches(union.size):
            rows = union[batch]
            x = widened(self.problem.x[rows])
            records = records_of(x, self.problem.eps)
            for name, (at, columns) in places.items():
                inside = slice(*np.searchsorted(at, (rows[0], rows[-1] + 1)))
                local_rows = np.searchsorted(rows, at[inside])
                if not local_rows.size:
                    continue
                enclosure = self.whole_rows(name, rows, x, records)
                parts[name].append(
                    enclosure[local_rows, columns[inside]]
                    if enclosure.ndim == 2
                    else enclosure[local_rows]
                )
        return sums | {name: joined(pieces) for name, pieces in parts.items()}

    def whole_rows(self, name: str, rows: Any, x: Rows, records: Records) -> Enclosure:
        """One output of some rows, by double-double."""
        if name in ("mean", "rstd"):
            return mean(records) if name == "mean" else rstd(records)
        if name == "y":
            return y(x, self.problem, records)
        return dx(x, widened(self.problem.cotangent[rows]), self.problem, records)

    def by_exact(self, left: Open) -> Enclosures:
        """A `ladder.Step`: takes all open elements of a row together, so that its integers are made
        once and not kept."""
        sums = self._by_columns(left, Columns.by_exact)
        problem, question = self.problem, self.question
        pairs = {name: self._places(name, at) for name, at in left.items() if name not in COLUMNS}
        parts: dict[str, list[Enclosure]] = {name: [] for name in pairs}
        for i in _union([row for row, _ in pairs.values()]).tolist():
            row = exact.ExactRow(widened(problem.x[i]), problem.eps)
            for name, (at, columns) in pairs.items():
                wanted = columns[slice(*np.searchsorted(at, (i, i + 1)))].tolist()
                if not wanted:
                    continue
                if name == "mean":
                    enclosure = exact.mean(row)
                elif name == "rstd":
                    enclosure = exact.rstd(row, question)
                elif name == "y":
                    enclosure = exact.y(row, wanted, problem.weight, problem.bias, question)
                else:
                    dy = widened(problem.cotangent[i])
                    enclosure = exact.input_gradient(row, wanted, dy, problem.weight, question)
                parts[name].append(enclosure.reshape(-1))
        return sums | {name: joined(pieces) for name, pieces in parts.items()}

    def _by_columns(
        self, left: Open, read: Callable[["Columns", Question, Open], Enclosures]
    ) -> Enclosures:
        wanted = {name: at for name, at in left.items() if name in COLUMNS}
        if not wanted:
            return {}
        return read(self.columns, self.question, wanted)

    @cached_property
    def columns(self) -> "Columns":
        return Columns(self.problem, self.records)

    def _places(self, name: str, flat: Indices) -> tuple[Indices, Indices]:
        """Rows and columns of flat indices."""
        row, column = np.divmod(flat, 1 if name in ("mean", "rstd") else self.problem.x.shape[1])
        return row, column


class Columns:
    """Sums over all rows of a problem."""

    def __init__(self, problem: RowProblem, records: Records | None) -> None:
        self.problem = problem
        if records is None:
            chunks = [problem.x[rows] for rows in problem.chunks()]
            pieces = [records_of(widened(x), problem.eps) for x in chunks]
            records = np.concatenate([*pieces, np.zeros(0, double_double.STATISTICS)])
        self.records = records
        self.unsafe = bool(_lost(self.records).any())
        self.undefined = bool(undefined(self.records).any())

    @cached_property
    def rows(self) -> list[exact.ExactRow]:
        """All rows in integers."""
        return [exact.ExactRow(widened(x), self.problem.eps) for x in self.problem.x]

    @cached_property
    def singular(self) -> bool:
        """Whether some row is constant, and eps 0."""
        return any(row.radicand == 0 for row in self.rows)

    def double_double(self, question: Question, left: Open) -> Enclosures:
        """The open sums by double-double, and those that are not finite."""
        parts: dict[str, list[Enclosure]] = {name: [] for name in left}
        for columns in self._batches(_union(list(left.values()))):
            at = slice(None) if columns.size == self.problem.x.shape[1] else columns
            x, dy = (widened(a[:, at]) for a in (self.problem.x, self.problem.cotangent))
            finite, is_tame = np.all(np.isfinite(dy), axis=0), np.all(tame(dy), axis=0)
            sums = np.zeros((2, 3, columns.size))
            calm = dy if is_tame.all() else read_only(np.where(is_tame, dy, 0.0))
            block = double_double.COLUMNS
            arguments = x, calm, self.records, *sums
            each_block(double_double.parameter_gradients, columns.size, *arguments, block=block)
            for name, of_name in parts.items():
                inside = np.isin(columns, left[name])
                special = np.flatnonzero(inside & ~finite)
                if name == "dweight" and self.undefined:
                    enclosure = Enclosure(np.full(columns.size, np.nan))
                elif name == "dweight":
                    lost = (~is_tame | self.unsafe) & finite
                    enclosure = _open_where(lost, *sums[0])
                    values = [self._extended(columns[j], dy[:, j]) for j in special]
                    enclosure = enclosure.replace(special, Enclosure(np.array(values)))
                else:
                    enclosure = _open_where(~is_tame & finite, *sums[1])
                    values = [extended_sum(dy[:, j]) for j in special]
                    enclosure = enclosure.replace(special, Enclosure(np.array(values)))
                of_name.append(enclosure[inside])
        return {name: joined(pieces) for name, pieces in parts.items()}

    def by_exact(self, question: Question, left: Open) -> Enclosures:
        """The open sums by integers."""
        sums = {}
        for name, wanted in left.items():
            parts = []
            for columns in self._batches(wanted):
                dy = widened(self.problem.cotangent[:, columns])
                if name == "dbias":
                    parts.append(exact.bias_gradient(dy))
                elif self.singular:
                    parts.append(Enclosure(np.full(columns.size, np.nan)))
                else:
                    arguments = columns.tolist(), dy, question
                    parts.append(exact.weight_gradient(self.rows, *arguments))
            sums[name] = joined(parts)
        return sums

    def _extended(self, column: int, dy: Rows) -> float:
        """dweight of a column of dy that is not finite."""
        if self.singular:
            return float("nan")
        signs = [float(np.sign(row.deviations[column])) for row in self.rows]
        with np.errstate(invalid="ignore"):
            return extended_sum(dy * np.array(signs))

    def _batches(self, columns: Indices) -> Iterator[Indices]:
        step = max(1, _COLUMN_ELEMENTS // max(len(self.records), 1))
        if not self.problem.narrow:
            step = max(columns.size, 1)  # nothing to widen
        return (columns[at : at + step] for at in range(0, columns.size, step))


def _union(indices: list[Indices]) -> Indices:
    union: Indices = distinct(np.concatenate([*indices, np.empty(0, np.intp)]))
    return union


def _each_row(kernel: Callable[..., None], x: Rows, *arguments: Any) -> None:
    """kernel(first, last, x, *arguments) for all rows; without compilation where they are few."""
    if not small.allowance.covers(kernel, _INTERPRETED * x.size, kernel=kernel):
        return each_block(kernel, len(x), x, *arguments, block=rows_of_block(x))
    with np.errstate(all="ignore"):
        interpreted(kernel)(0, len(x), x, *(as_records(part) for part in arguments))


def rows_of_block(x: Rows) -> int:
    """How many rows a thread takes at a time."""
    return max(1, BLOCK // (4 * x.shape[1]))


def undefined(rows: Records) -> Mask:
    """The rows whose xhat is NaN: those that are not finite, and those where it is 0 * inf."""
    infinite = (rows["state"] == double_double.CONSTANT) & np.isinf(rows["r_hi"])
    return (rows["state"] == double_double.NOT_FINITE) | infinite


def tame(values: Rows) -> Mask:
    """Where a value is 0, or of a magnitude that the floating-point tiers allow."""
    size = np.abs(values)
    allowed = (size >= double_double.SMALLEST) & (size <= double_double.LARGEST)
    return (values == 0.0) | allowed


def joined(parts: list[Enclosure]) -> Enclosure:
    """Flat Enclosures, concatenated."""
    if not parts:
        return Enclosure(np.empty(0))
    return trusted(*(np.concatenate([getattr(part, name) for part in parts]) for name in PARTS))


def extended_sum(values: Rows) -> float:
    """The sum of values of which some are infinite or NaN."""
    special = values[~np.isfinite(values)]
    with np.errstate(invalid="ignore"):
        return float(np.sum(special))
