"""Some elements of a formula's outputs, in any context: their rows' statistics once, and then those
elements alone; each output's slices; or, of other formulas, whole rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.arithmetic.blocks import CACHED
from refkernels.arithmetic.enclosure import PARTS, Enclosure, trusted
from refkernels.arithmetic.ladder import Indices, Open
from refkernels.contexts.context import Context
from refkernels.contexts.value import Value
from refkernels.ops.canonical import Canonical
from refkernels.ops.formula import Apart, Formula, Sliced, Staged, Values, several
from refkernels.ops.readings import Reading, asked_of, needed
from refkernels.ops.slices import Slice, sliced

_SMALL = 0.75  # of the arrays: less is read apart
Enclose = Callable[[Value, tuple[int, ...]], Enclosure]


class Selection:
    """The elements `wanted` of the outputs. `cost`: the elements of the rows that are read."""

    def __init__(self, formula: Formula, question: Canonical, wanted: Open) -> None:
        self.formula, self.question, self.wanted = formula, question, wanted
        self.staged = isinstance(formula, Staged) and question.flat
        places = {name: self._places(name, at) for name, at in wanted.items()}
        self.places = places
        every = [name for name in wanted if not question.rows_of[name]]
        rows = [row for name, (row, _) in places.items() if name not in every]
        found = np.concatenate([*rows, np.empty(0, np.intp)]).astype(np.intp)
        self.rows: Indices = np.arange(question.rows) if every else np.unique(found)
        width = question.elements // max(question.rows, 1)
        self.cost = self.rows.size * max(width, 1) + sum(map(len, wanted.values()))
        if isinstance(formula, Apart):
            self.cost = sum(self._size(name) for name in wanted)

    def _places(self, name: str, at: Indices) -> tuple[Indices, Indices]:
        """The rows, and the places in them, of flat indices."""
        row, column = np.divmod(at, max(int(np.prod(self.question.shapes[name][1:])), 1))
        return row, column

    def read(self, xp: Context, enclose: Enclose) -> dict[str, Enclosure]:
        """The wanted elements, flat, by output; `enclose` takes a value and the shape it stands
        for."""
        if not self.wanted:
            return {}
        reading = Reading(xp, lambda value: ())
        if isinstance(self.formula, Apart):
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
        """The elements of the slices that some elements of an output are read from."""
        rows, columns = self.places[name]
        number = np.unique(rows).size if self.question.rows_of[name] else self.question.rows
        formula = self._apart(name)
        arrays = needed(formula, self.question.take(slice(0, 1)))
        taken = sliced(self.question, arrays, name, columns, formula.sliced).arrays.items()
        own = {one for one, argument in self.question.signature.takes.items() if argument.rows}
        return sum(a.size * (number if n in own else 1) for n, a in taken if a is not None)

    def _apart(self, name: str) -> Apart:
        formula = asked_of(self.formula, self.question, [name])
        assert isinstance(formula, Apart)
        return formula

    def _of_one(self, reading: Reading, name: str, enclose: Enclose) -> Iterator[Enclosure]:
        formula = self._apart(name)
        row, column = self.places[name]
        by_row = self.question.rows_of[name]
        for rows, inside in self._pieces(name):
            arrays = needed(formula, self.question.take(rows))
            part = sliced(self.question, arrays, name, column[inside], formula.sliced)
            place = np.searchsorted(rows, row[inside]) if by_row else 0
            given = reading.given(part.arrays, self.question.params)
            value = self._output(formula(reading.xp, **given), name)
            shape = (len(rows) if by_row else 1, *part.shape)
            yield enclose(value, shape).reshape(-1)[part.at(place)]

    def _pieces(self, name: str) -> Iterator[tuple[Any, Any]]:
        """Blocks of rows with their elements; of an output that has none, all rows with elements
        that share all letters but the last two: the slices of more would be nearly everything."""
        row, column = self.places[name]
        if self.question.rows_of[name]:
            yield from ((rows, np.isin(row, rows)) for rows in self._blocks(np.unique(row)))
            return
        shared = column // max(int(np.prod(self.question.shapes[name][1:][-2:])), 1)
        ends = [0, *(np.flatnonzero(np.diff(shared)) + 1), column.size]
        yield from ((slice(None), slice(*pair)) for pair in itertools.pairwise(ends))

    def _blocks(self, own: Indices | None = None) -> Iterator[Indices]:
        width = max(self.question.elements // max(self.question.rows, 1), 1)
        length = max(CACHED // width, 1)
        listed = self.rows if own is None else own
        for start in range(0, max(listed.size, 1), length):  # of no rows there is a sum
            yield listed[start : start + length]

    def _statistics(self, reading: Reading) -> Values:
        formula, xp, params = self.formula, reading.xp, self.question.params
        assert isinstance(formula, Staged)
        found = []
        for rows in self._blocks():
            given = reading.given(self.question.take(rows), params)
            values = several(formula.statistics(xp, **given))
            found.append([xp.broadcast(one, (rows.size, 1)) for one in values])
        return tuple(xp.concatenate(one, axis=0) for one in zip(*found, strict=True))

    def _picked(
        self, reading: Reading, statistics: Values, name: str, enclose: Enclose
    ) -> Iterator[Enclosure]:
        formula, question, xp = self.formula, self.question, reading.xp
        assert isinstance(formula, Staged)
        rows, columns = self.places[name]
        for start in range(0, rows.size, CACHED):
            some = slice(start, start + CACHED)
            given = reading.given(question.pick(rows[some], columns[some]), question.params)
            place = np.searchsorted(self.rows, rows[some])
            kept = tuple(xp.take(one, place, axis=0) for one in statistics)
            value = self._output(formula.finish(xp, kept, **given), name)
            yield enclose(value, (place.size, 1)).reshape(-1)

    def _columns(
        self, reading: Reading, statistics: Values, name: str, enclose: Enclose
    ) -> Iterator[Enclosure]:
        formula, question = self.formula, self.question
        assert isinstance(formula, Staged)
        columns, length = self.places[name][1], max(CACHED // max(question.rows, 1), 1)
        for start in range(0, columns.size, length):
            some = columns[start : start + length]
            given = reading.given(question.columns(some), question.params)
            value = self._output(formula.finish(reading.xp, statistics, **given), name)
            yield enclose(value, (1, some.size)).reshape(-1)

    def _whole_rows(self, reading: Reading, enclose: Enclose) -> dict[str, Enclosure]:
        question, found = self.question, {name: [] for name in self.wanted}  # type: ignore[var-annotated]
        every = not all(question.rows_of[name] for name in self.wanted)
        for rows in [self.rows] if every else self._blocks():
            arrays = question.arrays if every else question.take(rows)
            apart = {} if every else self._slices(rows, arrays)
            for name, part in apart.items():
                given = reading.given(part.arrays, question.params)
                value = self._output(self.formula(reading.xp, **given), name)
                shape = (rows.size, *part.shape)
                found[name].append(enclose(value, shape).reshape(-1)[part.flat])
            if len(apart) == len(self.wanted):
                continue
            results = self.formula(reading.xp, **reading.given(arrays, question.params))
            for name in (name for name in self.wanted if name not in apart):
                shape = question.shapes[name]
                shape = (rows.size, *shape[1:]) if question.rows_of[name] else shape
                row, column = self.places[name]
                inside = np.isin(row, rows) if question.rows_of[name] else np.ones(row.shape, bool)
                place = np.searchsorted(rows, row[inside]) if question.rows_of[name] else 0
                flat = place * max(int(np.prod(shape[1:])), 1) + column[inside]
                found[name].append(enclose(self._output(results, name), shape).reshape(-1)[flat])
        return {name: joined(parts) for name, parts in found.items()}

    def _slices(self, rows: Indices, arrays: Mapping[str, Any]) -> dict[str, Slice]:
        """The outputs of a sliced formula that need no more than part of the arrays."""
        found: dict[str, Slice] = {}
        told = not self.question.flat and {*arrays} <= {*self.question.signature.takes}
        if not isinstance(self.formula, Sliced) or not told:
            return found
        for name, (row, column) in self.places.items():
            inside = np.isin(row, rows)
            part = sliced(self.question, arrays, name, column[inside])
            if part.share < _SMALL:
                place = np.searchsorted(rows, row[inside])
                found[name] = replace(part, flat=part.at(place))
        return found

    def _output(self, results: Any, name: str) -> Value:
        value = dict(zip(self.question.shapes, several(results), strict=True))[name]
        assert value is not None
        return value


def joined(parts: Any) -> Enclosure:
    """Flat Enclosures one after the other."""
    listed = list(parts)
    columns = (np.concatenate([getattr(one, name) for one in listed]) for name in PARTS)
    return trusted(*columns)
