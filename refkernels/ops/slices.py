"""Some elements of a sliced formula's output, and the parts of the arrays that they depend on.

Along a free letter an element depends on its own index alone. So the arrays are cut to the indices
of the wanted elements, letter by letter, and the formula gives the output, cut likewise. Each row
has its own indices where all arrays have rows; a row with fewer indices repeats one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.ops.canonical import Canonical

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Slice:
    """The cut `arrays`; the `shape` of the output that they give, without its rows; `flat`: the
    wanted elements' indices in a row of it; `share`: the cut arrays' share of all elements."""

    arrays: dict[str, Any]
    shape: tuple[int, ...]
    flat: Indices
    share: float

    def at(self, row: Any) -> Indices:
        """The flat indices of the wanted elements, each in one of the rows of the cut output."""
        return row * max(math.prod(self.shape), 1) + self.flat


@dataclass(frozen=True)
class Cut:
    """The indices of the wanted elements of an output, by free letter: (rows, width), or (1, width)
    where all rows share them. `shape` is that of a row of the cut output, `flat` where the wanted
    elements are in it."""

    kept: dict[str, Indices]
    shape: tuple[int, ...]
    flat: Indices

    def elements(self, question: Canonical) -> int:
        """How many elements a row of the cut arrays has."""
        takes = question.signature.takes
        return sum(
            math.prod(
                self.kept[letter].shape[1] if letter in self.kept and length > 1 else length
                for letter, length in zip(takes[name].own, array.shape[1:], strict=False)
            )
            for name, array in question.arrays.items()
            if array is not None and name in takes
        )

    def applied(self, question: Canonical, arrays: Mapping[str, Any]) -> Slice:
        """The slice of these arrays, which hold the rows that the indices are for."""
        takes = question.signature.takes
        cut = {
            name: _cut(array, takes[name].own, self.kept)
            if array is not None and name in takes
            else array
            for name, array in arrays.items()
        }
        sizes = [sum(a.size for a in side.values() if a is not None) for side in (cut, arrays)]
        return Slice(cut, self.shape, self.flat, sizes[0] / max(sizes[1], 1))


def cut_of(
    question: Canonical,
    name: str,
    columns: Indices,
    row: Indices | None = None,
    rows: int = 1,
    free: bool = True,
) -> Cut:
    """The cut for an output's elements at flat `columns`, of the rows numbered `row` of `rows`;
    without `row`, of any rows, which then share their indices. `free`: whether letters are cut."""
    takes, letters = question.signature.takes, question.signature.gives[name].own
    lengths = question.shapes[name][1:]
    kept: dict[str, Indices] = {}
    flat, shape = np.zeros(columns.shape, np.intp), []
    for letter, length, places in zip(
        letters, lengths, np.unravel_index(columns, lengths), strict=False
    ):
        if free and letter not in question.signature.coupled:
            by_row = all(a.rows for a in takes.values() if letter in a.own)
            table, position = (
                _of_each_row(row, places, rows, length)
                if by_row and row is not None
                else _of_all(places)
            )
            if table.shape[1] < length:
                kept[letter], places, length = table, position, table.shape[1]
        shape.append(length)
        flat = flat * length + places
    return Cut(kept, (*shape, *lengths[len(letters) :]), flat)


def _of_all(places: Indices) -> tuple[Indices, Indices]:
    """The different indices, (1, width), and the position of each place among them."""
    indices, position = np.unique(places, return_inverse=True)
    return indices[None], position


def _of_each_row(row: Indices, places: Indices, rows: int, length: int) -> tuple[Indices, Indices]:
    """The different indices of each row, (rows, width), and the position of each place among its
    row's."""
    if not places.size:
        return np.zeros((rows, 1), np.intp), places
    pairs, position = np.unique(row * length + places, return_inverse=True)
    owner, index = np.divmod(pairs, length)
    starts = np.searchsorted(owner, np.arange(rows))
    number = np.arange(pairs.size) - starts[owner]
    filled = np.minimum(starts, pairs.size - 1)
    table = np.repeat(index[filled][:, None], int(number.max()) + 1, axis=1)
    table[owner, number] = index
    return table, number[position]


def _cut(array: Any, letters: tuple[str, ...], kept: Mapping[str, Indices]) -> Any:
    for axis, letter in enumerate(letters, 1):
        if letter not in kept or array.shape[axis] == 1:
            continue
        table = kept[letter]
        if len(table) == 1:
            array = np.take(array, table[0], axis=axis)
        else:
            picked = np.moveaxis(array, axis, 1)[np.arange(len(table))[:, None], table]
            array = np.moveaxis(picked, 1, axis)
    return array
