"""The units of observation: elements, or cores where elements share statistics.

A core is a row of an op whose elements depend on their whole row; where rows are few, what the
formula's intermediate results connect, such as a query's elements of attention. Gradients that are
summed across cores say no more than the cores do. Elements, or cores, with equal inputs are counted
once, and so are those of one answer of many digits that a kernel gives alike.

There is evidence in where an output is wrong, too, whatever its values there are. A wrong NaN
proves that a kernel is wrong, not why. A cause that marks m of n distinct places, of which k are
the wrong ones, is told from chance by C(n, k) / C(m, k): any k places would all be among the m with
the inverse of that probability. One wrong argument among thirteen is 3.7 bits, however often the
input repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import distinct, to_float64
from refkernels.contexts import independence
from refkernels.contexts.doubles import Doubles as InDoubles
from refkernels.contexts.record import record
from refkernels.diagnosis import products
from refkernels.diagnosis.problem import Array, Doubles, Problem
from refkernels.diagnosis.set_apart import has_few_bits
from refkernels.ops import readings
from refkernels.ops.canonical import Canonical
from refkernels.ops.formulas import Formulas

Places = npt.NDArray[np.intp]
CAP = 8.0  # bits that one unit can earn by ordinary roundings, however many
MOST = 2**16  # counted elements: far more than any proof needs
FEW = 64  # rows up to which the elements of each are told apart: as units, more are enough
_XP = InDoubles()


@dataclass(frozen=True)
class Units:
    """`places`: the flat indices of the counted elements; `owner`: the unit of each, 0, 1, ...;
    `cores`: how many cores a gradient was summed across, None where it was not."""

    places: Places
    owner: Places
    cores: int | None = None

    @property
    def count(self) -> int:
        units = int(self.owner[-1]) + 1 if self.owner.size else 0
        return units if self.cores is None else min(units, self.cores)

    def as_one(self) -> Units:
        """All elements as one unit: an output that is one number throughout."""
        return replace(self, owner=np.zeros_like(self.owner))

    def chosen(self, array: Array) -> Array:
        """The counted elements of an array."""
        return np.ascontiguousarray(array).reshape(-1)[self.places]

    def earned(self, bits: Doubles) -> Doubles:
        """The bits that each unit earns where a model reproduces it: the sum, up to 8 bits, or one
        element's bits if these are more."""
        total = np.bincount(self.owner, bits)
        largest = np.zeros(total.size)
        np.maximum.at(largest, self.owner, bits)
        return self._capped(np.maximum(np.minimum(CAP, total), largest))

    def gained(self, bits: Doubles) -> Doubles:
        """The bits that each unit gains by a shorter code, or loses by a longer one: at most 8."""
        each = np.clip(bits, -CAP, CAP)
        return self._capped(np.clip(np.bincount(self.owner, each), -CAP, CAP))

    def any(self, mask: Array) -> Array:
        """Which units have an element where the mask is set."""
        return np.asarray(np.bincount(self.owner, mask) > 0)

    def _capped(self, bits: Doubles) -> Doubles:
        """Bits scaled down to at most 8 for each core that a gradient was summed across."""
        if self.cores is None or not bits.size:
            return bits
        most = max(CAP * self.cores, float(np.max(bits)))
        return bits * min(1.0, most / max(float(np.sum(np.abs(bits))), 1e-300))


def of(problem: Problem, output: str, got: Array | None = None) -> Units:
    """The units of an output; copies of one result that a kernel does not give alike are apart."""
    definition = problem.op.definition
    if definition is not None and definition.forward.signature.coupled:
        return _of_rows(definition, problem, output, got)
    if (product := products.of(problem, output)) is not None:
        return _of_product(product, np.asarray(problem.truth.reference[output]))
    return _distinct(_spaced(problem.truth.reference[output].size), problem, output, got)


def _of_rows(definition: Formulas, problem: Problem, output: str, got: Array | None) -> Units:
    """The units of an op whose elements depend on their whole row."""
    question = definition.question(problem.direction, problem.inputs, problem.params)
    exact = np.asarray(problem.truth.reference[output])
    order = question.order(output).reshape(-1)
    canonical_exact = question.in_axes(output, exact).reshape(-1)
    size = canonical_exact.size
    place = np.full(size, -1)  # of each canonical element, -1 where users see none
    place[order] = np.arange(order.size)
    summed = question.rows > 1 and not question.rows_of[output]
    labels = None if summed else _connected(definition, problem, question, output)
    own = exact if got is None else to_float64(got)
    both = np.column_stack((canonical_exact, question.in_axes(output, own).reshape(-1)))
    if labels is not None:
        places, owner = independence.units(labels.reshape(-1), both)
        return _seen(place[places], owner)
    by_row = [array for array in question.arrays.values() if array is not None and len(array) > 1]
    rows = _ids([array.reshape(question.rows, -1) for array in by_row or [np.zeros((1, 1))]])
    if not question.rows_of[output]:
        places = _spaced(order.size)
        return Units(places, np.arange(places.size), int(distinct(rows).size))
    # Of other inputs, the same answer of many digits rarely comes by chance.
    in_rows = both.reshape(question.rows, -1)
    few_digits = has_few_bits(in_rows, problem.format_of(output)).all(axis=1)
    cores = _firsts(_ids([in_rows, np.where(few_digits, rows, -1)[:, None]]))
    width = size // max(question.rows, 1)
    cores = cores[_spaced(cores.size, max(1, MOST // max(width, 1)))]
    canonical = (cores[:, None] * width + np.arange(width)).reshape(-1)
    return _seen(place[canonical], np.repeat(np.arange(cores.size), width))


def _seen(places: Places, owner: Places) -> Units:
    return Units(places[places >= 0], owner[places >= 0])


def _connected(
    definition: Formulas, problem: Problem, question: Canonical, output: str
) -> Places | None:
    """What connects the elements of an output in the op's first formula, by its numbers; None where
    it tells no more than rows do, or has no graph, or one too large."""
    if question.rows > FEW:
        return None
    formula = readings.restricted_to(definition.first(problem.direction), question, [output])
    arguments = readings.Reading(_XP, lambda value: ()).arguments(question.arrays, question.params)
    try:
        graph = record(formula, arguments)
    except (ValueError, TypeError, IndexError):
        return None
    node = graph.outputs[[*question.shapes].index(output)]
    labels = None if node is None else independence.components(graph, node)
    return None if labels is None or np.unique(labels).size <= question.rows else labels


def _of_product(product: products.Product, exact: Doubles) -> Units:
    rows = _ids([product.a])
    bias = [] if product.bias is None else [product.bias[:, None]]
    columns = _ids([np.ascontiguousarray(product.b.T), *bias])
    places = _spaced(rows.size * columns.size)
    i, j = np.divmod(places, columns.size)
    keys: list[Array] = [(rows[i] * columns.size + columns[j])[:, None]]
    if bias:  # a row and the bias of another size give another sum
        keys.append(exact.reshape(-1, 1)[places])
    first = _firsts(_ids(keys))
    return Units(places[first], np.arange(first.size))


def _distinct(places: Places, problem: Problem, output: str, got: Array | None) -> Units:
    """The elements of an output without copies; in an op that is not elementwise, one result of
    many digits rarely stands in two places by chance."""
    exact = np.asarray(problem.truth.reference[output])
    shape, values = exact.shape, exact.reshape(-1, 1)[places]
    if problem.op.elementwise:
        inputs = [array for array in problem.inputs.values() if array.shape == shape]
        keys = [*(array.reshape(-1, 1)[places] for array in inputs), values]
    else:
        few_digits = has_few_bits(values, problem.format_of(output))
        own = values if got is None else to_float64(got).reshape(-1, 1)[places]
        keys = [values, own, np.where(few_digits, places[:, None], -1)]
    if problem.op.elementwise and len(keys) == 1:
        return Units(places, np.arange(places.size))
    places = places[_firsts(_ids(keys))]
    return Units(places, np.arange(places.size))


def _ids(arrays: Sequence[Array]) -> Places:
    """A number for each row: rows that are equal up to ±2^j in each array have the same."""
    parts = []
    for array in arrays:
        rows = array.reshape(len(array), -1)
        rows = np.ascontiguousarray(rows if rows.dtype.kind in "biu" else _in_one_size(rows))
        parts.append(rows.view(np.uint8))
    joined = np.ascontiguousarray(np.hstack(parts))
    if not joined.size:
        return np.zeros(len(joined), np.intp)
    keys = joined.view(np.dtype((np.void, joined.shape[1]))).reshape(-1)
    return np.unique(keys, return_inverse=True)[1].reshape(-1)


def _in_one_size(rows: Array) -> Doubles:
    """Each row times the ±2^j that brings its first number other than 0 to [1/2, 1)."""
    wide = to_float64(rows)
    if not wide.size:
        return wide
    first = wide[np.arange(len(wide)), np.argmax(wide != 0.0, axis=1)][:, None]
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(wide, -np.frexp(first)[1]) * np.copysign(1.0, first)
    return np.asarray(scaled + 0.0)  # one zero


def _firsts(ids: Places) -> Places:
    """The first place of each number."""
    return np.sort(np.unique(ids, return_index=True)[1])


def _spaced(size: int, most: int = MOST) -> Places:
    """All indices, or `most` of them, spread evenly."""
    if size <= most:
        return np.arange(size)
    return np.linspace(0, size - 1, most).astype(np.intp)


def place_bits(places: int, marked: int, wrong: int) -> float:
    """log2 (C(places, wrong) / C(marked, wrong)), for wrong <= marked <= places."""
    drawn = (math.lgamma(n + 1) - math.lgamma(n - wrong + 1) for n in (places, marked))
    return (next(drawn) - next(drawn)) / math.log(2.0) if wrong else 0.0


def by_unit(problem: Problem, output: str, wrong: Array, marked: Array | None = None) -> float:
    """The bits of a cause that marks exactly the wrong elements, or more: their units are the
    places."""
    counted = of(problem, output)
    masks = (wrong if marked is None else marked, wrong)
    numbers = [int(np.count_nonzero(counted.any(counted.chosen(mask)))) for mask in masks]
    return place_bits(counted.any(counted.chosen(wrong)).size, *numbers)


def shared(problem: Problem, output: str, wrong: Array, total: float) -> Doubles:
    """The bits of each element, of which the counted wrong ones earn `total` together."""
    number = int(np.count_nonzero(of(problem, output).chosen(wrong)))
    return np.full(wrong.shape, total / max(number, 1))
