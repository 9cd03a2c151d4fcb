"""A formula read in a context: its outputs as arrays, computed in blocks of rows.

A block of rows, some 2^15 elements, goes through the whole formula while it is in the cache, on as
many threads as Numba may use; results do not depend on which thread takes which block. An output
without rows is a sum over all of them: the statistics of a staged formula are read in blocks of
rows, then its last stage in blocks of columns, so that a bound sees every term of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas
from refkernels.arithmetic.blocks import CACHED, spread
from refkernels.contexts.ball import Ball
from refkernels.contexts.ball import parts as mid_and_radius
from refkernels.contexts.bound import Bound
from refkernels.contexts.bound_value import parts as bounded
from refkernels.contexts.context import Context
from refkernels.contexts.double_double import DoubleDouble, columns
from refkernels.contexts.reachable import Reachable
from refkernels.contexts.record import record
from refkernels.contexts.value import Value
from refkernels.contexts.working import RoundedArithmetic, RoundedValue
from refkernels.ops.canonical import Canonical, Shared
from refkernels.ops.formula import Formula, PerOutput, TwoStage, Values, Whole, by_output, several

Array = npt.NDArray[Any]
Parts = tuple[Array, ...]
Named = Mapping[str, Any]
_PAIRS = 1 << 23  # elements of a block's rows with those of arrays without rows, pair by pair
_SHARED = 1 << 14  # elements up to which formulas share their steps, whose values are then kept


@dataclass(frozen=True)
class Reading:
    """A context, and `parts`, which extracts the arrays to keep from a value."""

    xp: Context
    parts: Callable[[Value], Parts]
    _shared: dict[Shared, Value] = field(default_factory=dict, init=False, repr=False)

    def arguments(self, arrays: Named, params: Named) -> dict[str, Any]:
        """The arrays and params in the form that the formula takes: floats as values of the
        context, the rest unchanged."""
        values = {name: self._array(array) for name, array in arrays.items()}
        return {**values, **{name: self._param(value) for name, value in params.items()}}

    def _array(self, array: Array | None) -> Any:
        return array if array is None or array.dtype.kind in "iub" else self.xp.array(array)

    def _param(self, value: Any) -> Any:
        if isinstance(value, Shared):
            if value not in self._shared:
                self._shared[value] = value.of(self.xp)
            return self._shared[value]
        return self.xp.number(value) if isinstance(value, float) else value


def ball() -> Reading:
    """In float64 balls; keeps mid and radius."""
    return Reading(Ball(), mid_and_radius)


def double_double() -> Reading:
    """In double-double; keeps the head, and mid and radius of the tail."""
    return Reading(DoubleDouble(), columns)


def bound(xp: Bound) -> Reading:
    """The bound on a right kernel's error; keeps the size of the exact value too."""
    return Reading(xp, lambda value: (xp.bound(value), bounded(value).size))


def reachable(xp: Reachable) -> Reading:
    """Both ends of the values that leave a format's range on the way, and whether NaN is one."""
    return Reading(xp, xp.ends)


def working(xp: RoundedArithmetic) -> Reading:
    """A kernel's answer, in its storage format."""

    def parts(value: Value) -> Parts:
        stored = xp.store(value)
        assert isinstance(stored, RoundedValue)
        with np.errstate(all="ignore"):
            return (stored.data.astype(xp.storage.storage),)

    return Reading(xp, parts)


def read(
    formula: Formula,
    reading: Reading,
    question: Canonical,
    names: tuple[str, ...],
    statistics: Values | None = None,
) -> dict[str, Parts]:
    """The outputs of a formula, by name, in their canonical shapes. Empty outputs are not computed,
    since the formula might take the maximum of no elements. `statistics`: those of all rows, where
    they are known already and no output has rows."""
    empty = {name for name in names if 0 in question.shapes[name]}
    nothing = {name: np.empty(question.shapes[name], np.float32) for name in empty}
    outputs = {name: reading.parts(reading.xp.array(array)) for name, array in nothing.items()}
    names = tuple(name for name in names if name not in empty)
    if not names:
        return outputs
    summed = [name for name in names if not question.rows_of[name]]
    if isinstance(formula, PerOutput) and 0 < len(summed) < len(names):
        by_row = tuple(name for name in names if name not in summed)
        for group in (by_row, tuple(summed)):
            outputs |= read(formula, reading, question, group)
        return outputs
    blocks = _Blocks(formula, reading, question, names)
    with blas.on_one_thread():  # blocks have threads of their own
        by_columns = isinstance(formula, TwoStage) and question.flat
        if isinstance(formula, Whole) or (summed and not by_columns):
            return outputs | blocks.whole()
        if statistics is None:
            outputs |= blocks.rows(keep_statistics=bool(summed))
        else:
            blocks.statistics = [statistics]
        if summed:
            outputs |= blocks.columns(summed)
    return outputs


def read_forms(
    forms: Mapping[str, Formula], reading: Reading, question: Canonical, names: tuple[str, ...]
) -> dict[str, dict[str, Parts]]:
    """The outputs of several formulas, by form, by name. On some thousand elements the steps that
    they share are computed once."""
    apart = len(forms) == 1 or any(isinstance(formula, Whole) for formula in forms.values())
    if apart or any(0 in question.shapes[n] for n in names) or question.elements > _SHARED:
        return {form: read(formula, reading, question, names) for form, formula in forms.items()}
    arguments = reading.arguments(question.arrays, question.params)

    def all_outputs(xp: Context, **arguments: Any) -> Values:
        outputs: list[Any] = []
        for form in forms.values():
            formula = restricted_to(form, question, names)
            absent = dict.fromkeys(question.arrays.keys() - needed(formula, question.arrays))
            values = by_output(question.shapes, formula(xp, **{**arguments, **absent}))
            outputs += [values[name] for name in names]
        return tuple(outputs)

    key = names, *map(id, forms.values())
    if key not in question.graphs:  # one for all contexts
        question.graphs[key] = record(all_outputs, arguments), forms
    graph, _ = question.graphs[key]
    with blas.on_one_thread():
        values = iter(graph.read(reading.xp, arguments))
    return {
        form: {
            name: tuple(
                np.broadcast_to(part, question.shapes[name]) for part in reading.parts(next(values))
            )
            for name in names
        }
        for form in forms
    }


def restricted_to(formula: Formula, question: Canonical, names: Collection[str]) -> Formula:
    """The formula restricted to these outputs, where it has one for each output."""
    if not isinstance(formula, PerOutput):
        return formula
    return formula.restricted(name in names for name in question.shapes)


def needed(formula: Formula, arrays: Named) -> Named:
    """The arrays that a formula takes."""
    if not isinstance(formula, PerOutput):
        return arrays
    return {name: array for name, array in arrays.items() if name in formula.takes}


class _Blocks:
    """One reading of a question, in blocks."""

    def __init__(
        self, formula: Formula, reading: Reading, question: Canonical, names: tuple[str, ...]
    ) -> None:
        self.reading, self.question, self.names = reading, question, names
        self.formula = restricted_to(formula, question, names)
        self.statistics: list[Values] = []
        reading.arguments({}, question.params)  # computes the shared values before threads start

    def whole(self) -> dict[str, Parts]:
        """All rows at once."""
        values = self._outputs(self.question.arrays)
        return {name: self._parts(name, values[name], self.question.rows) for name in self.names}

    def rows(self, keep_statistics: bool) -> dict[str, Parts]:
        """The outputs that have rows. `keep_statistics`: also keeps the statistics of all rows."""
        question = self.question
        by_row = [name for name in self.names if question.rows_of[name]]
        arrays = [array for array in question.arrays.values() if array is not None]
        own = max((len(a) and a[0].size for a in arrays if len(a) == question.rows), default=1)
        largest = max(question.elements, 1)
        # Each block reads arrays without rows again, so there are fewer blocks beside large ones.
        most = min(CACHED // max(own, 1), _PAIRS // largest)
        length = max(CACHED // max(largest // max(question.rows, 1), 1), most, 1)
        number = -(-question.rows // length)
        blocks: list[dict[str, Parts]] = [{} for _ in range(number)]
        statistics: list[Values] = [()] * number

        def block(start: int, stop: int) -> None:
            arrays = question.take(slice(start, stop))
            if not keep_statistics:
                values = self._outputs(arrays)
            else:
                assert isinstance(self.formula, TwoStage)
                xp, arguments = self.reading.xp, self.reading.arguments(arrays, question.params)
                of_rows = several(self.formula.statistics(xp, **arguments))
                statistics[start // length] = of_rows
                if not by_row:
                    return
                values = self._named(self.formula.finish(xp, of_rows, **arguments))
            blocks[start // length] = {
                name: self._parts(name, values[name], stop - start) for name in by_row
            }

        spread(question.rows, block, length)
        self.statistics = statistics
        return {
            name: tuple(map(np.concatenate, zip(*(parts[name] for parts in blocks), strict=True)))
            if blocks
            else self._parts(name, self._outputs(question.arrays)[name], 0)
            for name in by_row
        }

    def columns(self, names: list[str]) -> dict[str, Parts]:
        """The outputs that are sums over the rows, from the statistics that `rows` kept."""
        question, xp = self.question, self.reading.xp
        assert isinstance(self.formula, TwoStage)
        finish = self.formula.finish
        if not question.rows:
            arguments = self.reading.arguments(question.arrays, question.params)
            self.statistics = [several(self.formula.statistics(xp, **arguments))]
        statistics = tuple(
            xp.concatenate(parts, axis=0) for parts in zip(*self.statistics, strict=True)
        )
        width = max(question.shapes[name][-1] for name in names)
        length = max(CACHED // max(question.rows, 1), 1)
        blocks: list[dict[str, Parts]] = [{} for _ in range(-(-width // length))]

        def block(start: int, stop: int) -> None:
            arguments = self.reading.arguments(
                question.columns(np.arange(start, stop)), question.params
            )
            values = self._named(finish(xp, statistics, **arguments))
            blocks[start // length] = {
                name: tuple(
                    np.broadcast_to(part, (1, stop - start))
                    for part in self.reading.parts(values[name])
                )
                for name in names
            }

        spread(width, block, length)
        return {
            name: tuple(
                np.concatenate(parts, axis=1)
                for parts in zip(*(block[name] for block in blocks), strict=True)
            )
            for name in names
        }

    def _outputs(self, arrays: Named) -> dict[str, Value]:
        arguments = self.reading.arguments(needed(self.formula, arrays), self.question.params)
        return self._named(self.formula(self.reading.xp, **arguments))

    def _named(self, results: Any) -> dict[str, Value]:
        return by_output(self.question.shapes, results)

    def _parts(self, name: str, value: Value, rows: int) -> Parts:
        shape = self.question.shapes[name]
        if self.question.rows_of[name]:
            shape = (rows, *shape[1:])
        parts = self.reading.parts(value)
        try:
            return tuple(np.broadcast_to(part, shape) for part in parts)
        except ValueError:
            own, said = parts[0].shape[1:], shape[1:]
            raise ValueError(
                f"The formula gives rows of {name} of shape {own}: by its signature it is {said}."
            ) from None
