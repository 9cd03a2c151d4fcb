"""Some elements of a sliced formula's output, and the parts of the arrays that they depend on.

An element depends, of a free letter, on its own index alone. So the arrays are cut to the indices
that the wanted elements have, letter by letter; what comes out is their output, cut likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.ops.canonical import Canonical

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Slice:
    """`arrays`, cut; `shape` of the output that they give, without its rows; `flat`: the places of
    the wanted elements in it, rows apart; `share`: the elements of the arrays, of those uncut."""

    arrays: dict[str, Any]
    shape: tuple[int, ...]
    flat: Indices
    share: float


def sliced(
    question: Canonical, arrays: Mapping[str, Any], name: str, columns: Indices
) -> Slice | None:
    """Of an output's elements at flat `columns` of any rows. None where an array has letters that
    are not told."""
    takes, coupled = question.signature.takes, question.signature.coupled
    if question.flat or not set(arrays) <= set(takes):
        return None
    own, lengths = question.signature.gives[name].own, question.shapes[name][1:]
    kept: dict[str, Indices] = {}
    flat, shape = np.zeros(columns.shape, np.intp), []
    for letter, length, places in zip(
        own, lengths, np.unravel_index(columns, lengths), strict=True
    ):
        if letter not in coupled:
            kept[letter], places = np.unique(places, return_inverse=True)
            length = kept[letter].size
        shape.append(length)
        flat = flat * length + places
    cut = {
        name: None if array is None else _cut(array, takes[name].own, kept)
        for name, array in arrays.items()
    }
    sizes = [sum(a.size for a in some.values() if a is not None) for some in (cut, arrays)]
    return Slice(cut, tuple(shape), flat, sizes[0] / max(sizes[1], 1))


def _cut(array: Any, letters: tuple[str, ...], kept: Mapping[str, Indices]) -> Any:
    for axis, letter in enumerate(letters, 1):
        if letter in kept and kept[letter].size < array.shape[axis]:
            array = np.take(array, kept[letter], axis=axis)
    return array
