"""Some elements of a sliced formula's output, and the parts of the arrays that they depend on.

Along a free letter an element depends on its own index alone. So the arrays are cut to the indices
of the wanted elements, letter by letter, and the formula gives the output, cut likewise.
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


def sliced(
    question: Canonical, arrays: Mapping[str, Any], name: str, columns: Indices, free: bool = True
) -> Slice:
    """The slice for an output's elements at flat `columns` of any rows. `free`: whether letters
    are cut at all."""
    takes, own = question.signature.takes, question.signature.gives[name].own
    lengths = question.shapes[name][1:]
    kept: dict[str, Indices] = {}
    flat, shape = np.zeros(columns.shape, np.intp), []
    for letter, length, places in zip(
        own, lengths, np.unravel_index(columns, lengths), strict=False
    ):
        if free and letter not in question.signature.coupled:
            kept[letter], places = np.unique(places, return_inverse=True)
            length = kept[letter].size
        shape.append(length)
        flat = flat * length + places
    cut = {
        name: _cut(array, takes[name].own, kept) if array is not None and name in takes else array
        for name, array in arrays.items()
    }
    sizes = [sum(a.size for a in side.values() if a is not None) for side in (cut, arrays)]
    return Slice(cut, (*shape, *lengths[len(own) :]), flat, sizes[0] / max(sizes[1], 1))


def _cut(array: Any, letters: tuple[str, ...], kept: Mapping[str, Indices]) -> Any:
    for axis, letter in enumerate(letters, 1):
        if letter in kept and kept[letter].size < array.shape[axis]:
            array = np.take(array, kept[letter], axis=axis)
    return array
