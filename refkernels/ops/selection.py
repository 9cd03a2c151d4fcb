"""Some elements of a formula's outputs, read in any context.

A staged formula is read once for the statistics of the elements' rows, and then for those elements
alone. A formula that is split by output is read for the elements' slices, any other for whole rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.arithmetic.arrays import distinct
from refkernels.arithmetic.blocks import CACHED
from refkernels.arithmetic.enclosure import PARTS, Enclosure, trusted
from refkernels.arithmetic.ladder import Indices, Open
from refkernels.contexts.context import Context
from refkernels.contexts.value import Value
from refkernels.ops import formula as formulas
from refkernels.ops.canonical import Canonical
from refkernels.ops.formula import Formula, PerOutput, Sliced, TwoStage, Values, Whole
from refkernels.ops.readings import Reading, needed, restricted_to
from refkernels.ops.slices import Cut, Slice, cut_of

_SMALL = 0.75  # slices below this share of the arrays are read on their own
_CUT = 8 * CACHED
"""Elements in a block of cut arrays: enough that a reading's fixed cost does not dominate."""
Enclose = Callable[[Value, tuple[int, ...]], Enclosure]


class Selection:
    """The elements `wanted` of the outputs. `cost`: the elements of the rows that are read."""

    def __init__(self, formula: Formula, question: Canonical, wanted: Open) -> None:
        self.formula, self.question, self.wanted = formula, question, wanted
        self.staged = isinstance(formula, TwoStage) and question.flat
        places = {name: self._places(name, at) for name, at in wanted.items()}
        self.places = places
        rowless = [name for name in wanted if not question.rows_of[name]]
        rows = [row for name, (row, _) in places.items() if name not in rowless]
        wanted_rows = np.concatenate([*rows, np.empty(0, np.intp)]).astype(np.intp)
        self.all_rows = bool(rowless) or isinstance(formula, Whole)
        self.rows: Indices = np.arange(question.rows) if self.all_rows else distinct(wanted_rows)
        width = question.elements // max(question.rows, 1)
        self.cost = self.rows.size * max(width, 1) + sum(map(len, wanted.values()))
        self.cost = max(self.cost, getattr(formula, "work", 0))
        if isinstance(formula, PerOutput):
            self.cost = sum(self._size(name) for name in wanted)

    def _places(self, name: str, at: Indices) -> tuple[Indices, Indices]:
        """The rows of flat indices, and the columns in them."""
        row, column = np.divmod(at, max(int(np.prod(self.question.shapes[name][1:])), 1))
        return row, column

    def read(self, xp: Context, enclose: Enclose) -> dict[str, Enclosure]:
        """The wanted elements, flat, by output. `enclose` takes a value and the shape that it
        broadcasts to."""
        if not self.wanted:
            return {}
        reading = Reading(xp, lambda value: ())
        if isinstance(self.formula, PerOutput):
            return {name: joined(self._of_one(reading, name, enclose)) for name in self.wanted}
        if not self.staged:
            return self._whole_rows(reading, enclose)
        statistics = self._statistics(reading)
        return {
            name: joined(
                self._picked(reading, statistics, name, enclose)
                if self.question.rows_of[name]
                else self._columns(reading, statistics, name, enclose)
            )
            for name in self.wanted
        }

    def _size(self, name: str) -> int:
        """The number of elements in the slices that an output's wanted elements are read from."""
        rows, columns = self.places[name]
        number = distinct(rows).size if self.question.rows_of[name] else self.question.rows
        formula = self._apart(name)
        arrays = needed(formula, self.question.take(slice(0, 1)))
        cut = cut_of(self.question, name, columns, free=formula.sliced)
        slices = cut.applied(self.question, arrays).arrays.items()
        with_rows = {k for k, argument in self.question.signature.takes.items() if argument.rows}
        return sum(a.size * (number if k in with_rows else 1) for k, a in slices if a is not None)

    def _apart(self, name: str) -> PerOutput:
        formula = restricted_to(self.formula, self.question, [name])
        assert isinstance(formula, PerOutput)
        return formula

    def _of_one(self, reading: Reading, name: str, enclose: Enclose) -> Iterator[Enclosure]:
        formula = self._apart(name)
        row, column = self.places[name]
        by_row = self.question.rows_of[name]
        for rows, inside in self._pieces(name):
            arrays = needed(formula, self.question.take(rows))
            cut = cut_of(self.question, name, column[inside], free=formula.sliced)
            part = cut.applied(self.question, arrays)
            place = np.searchsorted(rows, row[inside]) if by_row else 0
            arguments = reading.arguments(part.arrays, self.question.params)
            value = self._output(formula(reading.xp, **arguments), name)
            shape = (len(rows) if by_row else 1, *part.shape)
            yield enclose(value, shape).reshape(-1)[part.at(place)]

    def _pieces(self, name: str) -> Iterator[tuple[Any, Any]]:
        """Blocks of rows with their elements. For an output without rows: all rows, with elements
        that share all letters but the last two; slices for more elements would be nearly the whole
        arrays."""
        row, column = self.places[name]
        if self.question.rows_of[name]:
            yield from ((rows, np.isin(row, rows)) for rows in self._blocks(distinct(row)))
            return
        shared = column // max(int(np.prod(self.question.shapes[name][1:][-2:])), 1)
        ends = [0, *(np.flatnonzero(np.diff(shared)) + 1), column.size]
        yield from ((slice(None), slice(*pair)) for pair in itertools.pairwise(ends))

    def _blocks(self, rows: Indices | None = None) -> Iterator[Indices]:
        width = max(self.question.elements // max(self.question.rows, 1), 1)
        length = max(CACHED // width, self._cut_rows() if rows is None else 1, 1)
        listed = self.rows if rows is None else rows
        for start in range(0, max(listed.size, 1), length):  # a sum over no rows is an output too
            yield listed[start : start + length]

    def _statistics(self, reading: Reading) -> Values:
        formula, xp, params = self.formula, reading.xp, self.question.params
        assert isinstance(formula, TwoStage)
        blocks = []
        for rows in self._blocks():
            arguments = reading.arguments(self.question.take(rows), params)
            values = formulas.several(formula.statistics(xp, **arguments))
            blocks.append([xp.broadcast(statistic, (rows.size, 1)) for statistic in values])
        return tuple(xp.concatenate(statistic, axis=0) for statistic in zip(*blocks, strict=True))

    def _picked(
        self, reading: Reading, statistics: Values, name: str, enclose: Enclose
    ) -> Iterator[Enclosure]:
        formula, question, xp = self.formula, self.question, reading.xp
        assert isinstance(formula, TwoStage)
        rows, columns = self.places[name]
        for start in range(0, rows.size, CACHED):
            block = slice(start, start + CACHED)
            arguments = reading.arguments(
                question.pick(rows[block], columns[block]), question.params
            )
            place = np.searchsorted(self.rows, rows[block])
            picked = tuple(xp.take(statistic, place, axis=0) for statistic in statistics)
            value = self._output(formula.finish(xp, picked, **arguments), name)
            yield enclose(value, (place.size, 1)).reshape(-1)

    def _columns(
        self, reading: Reading, statistics: Values, name: str, enclose: Enclose
    ) -> Iterator[Enclosure]:
        formula, question = self.formula, self.question
        assert isinstance(formula, TwoStage)
        columns, length = self.places[name][1], max(CACHED // max(question.rows, 1), 1)
        for start in range(0, columns.size, length):
            block = columns[start : start + length]
            arguments = reading.arguments(question.columns(block), question.params)
            value = self._output(formula.finish(reading.xp, statistics, **arguments), name)
            yield enclose(value, (1, block.size)).reshape(-1)

    def _whole_rows(self, reading: Reading, enclose: Enclose) -> dict[str, Enclosure]:
        question, parts_by_name = self.question, {name: [] for name in self.wanted}  # type: ignore[var-annotated]
        all_rows = self.all_rows
        for rows in [self.rows] if all_rows else self._blocks():
            arrays = question.arrays if all_rows else question.take(rows)
            slices = {} if all_rows else self._slices(rows, arrays)
            for name, part in slices.items():
                arguments = reading.arguments(part.arrays, question.params)
                value = self._output(self.formula(reading.xp, **arguments), name)
                shape = (rows.size, *part.shape)
                parts_by_name[name].append(enclose(value, shape).reshape(-1)[part.flat])
            if len(slices) == len(self.wanted):
                continue
            results = self.formula(reading.xp, **reading.arguments(arrays, question.params))
            for name in (name for name in self.wanted if name not in slices):
                shape = question.shapes[name]
                shape = (rows.size, *shape[1:]) if question.rows_of[name] else shape
                row, column = self.places[name]
                inside = np.isin(row, rows) if question.rows_of[name] else np.ones(row.shape, bool)
                place = np.searchsorted(rows, row[inside]) if question.rows_of[name] else 0
                flat = place * max(int(np.prod(shape[1:])), 1) + column[inside]
                parts_by_name[name].append(
                    enclose(self._output(results, name), shape).reshape(-1)[flat]
                )
        return {name: joined(parts) for name, parts in parts_by_name.items()}

    def _sliceable(self) -> bool:
        """Whether the formula may be read for slices of the arrays."""
        whole = self.question.flat or self.all_rows or not isinstance(self.formula, Sliced)
        return not whole and {*self.question.arrays} <= {*self.question.signature.takes}

    def _cut(self, name: str, rows: Indices) -> tuple[Cut, Indices]:
        """The cut for an output's wanted elements in these rows, and the elements' places there."""
        row, column = self.places[name]
        inside = np.isin(row, rows)
        place = np.searchsorted(rows, row[inside])
        return cut_of(self.question, name, column[inside], place, rows.size), place

    def _cut_rows(self) -> int:
        """How many rows a block of cut arrays has, where every output needs only a small part."""
        if not self._sliceable():
            return 1
        widths = [self._cut(name, self.rows)[0].elements(self.question) for name in self.wanted]
        widest, full = max(widths), self.question.size_of_row
        return max(_CUT // max(widest, 1), 1) if widest < _SMALL * full else 1

    def _slices(self, rows: Indices, arrays: Mapping[str, Any]) -> dict[str, Slice]:
        """The slices of a sliced formula's outputs that need only a small part of the arrays."""
        slices: dict[str, Slice] = {}
        for name in self.places if self._sliceable() else ():
            cut, place = self._cut(name, rows)
            part = cut.applied(self.question, arrays)
            if part.share < _SMALL:
                slices[name] = replace(part, flat=part.at(place))
        return slices

    def _output(self, results: Any, name: str) -> Value:
        value = formulas.by_output(self.question.shapes, results)[name]
        assert value is not None
        return value


def joined(parts: Any) -> Enclosure:
    """Flat Enclosures, concatenated."""
    listed = list(parts)
    columns = (np.concatenate([getattr(part, name) for part in listed]) for name in PARTS)
    return trusted(*columns)
