"""Canonical arrays: how a formula sees an op's inputs, whatever their shapes.

Leading axes become one axis of rows, 0; a letter has an axis of its own after it. Where the op has
one letter, an array that lacks it has an axis of length 1 there, so that everything broadcasts:

    x[... n] (2, 3, 8)   (6, 8)        weight[n] (8,)   (1, 8)        target[...] (2, 3)   (6, 1)

Leading axes broadcast as NumPy's do. A list of arrays, `grads[n]*`, is one row: its elements, array
after array. An op's `prepare`, which returns `Prepared`, may add arrays to the inputs or move axes
first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.context import Context
from refkernels.contexts.value import Value
from refkernels.ops.letters import Argument, Shape, Signature

Array = npt.NDArray[Any]
Restore = Callable[[str, Array], Any]


@dataclass(frozen=True, eq=False)
class Shared:
    """A param that all rows share, such as the sum of all rows' weights. `of(xp)` computes it as a
    value of the formula's context, once per reading."""

    of: Callable[[Context], Value]


@dataclass(frozen=True)
class Prepared:
    """The result of an op's own `prepare`.

    inputs      arrays with axes as in the signature; an array that is not an input has the rows and
                letters of the input with the most letters
    params      the formula's params: `prepare` may drop those that it used up, and add the number
                of rows, since a formula sees a block of them; `Shared` for values of all rows
    restore     gives an output the axes that users expect; it only moves elements
    signature   another signature, where a param decides the outputs: reduction="mean"
    """

    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    restore: Restore = lambda name, array: array
    signature: Signature | None = None


@dataclass(frozen=True)
class Canonical:
    """A question as formulas see it. `shapes`: the canonical shapes of the outputs; `rows_of`:
    whether an output has rows; `restore`: gives an output's array the shape that users expect;
    `graphs`: of formulas that were recorded, with these."""

    signature: Signature
    arrays: Mapping[str, Array | None]
    params: Mapping[str, Any]
    rows: int
    shapes: Mapping[str, Shape]
    rows_of: Mapping[str, bool]
    restore: Restore
    graphs: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def elements(self) -> int:
        """The number of elements of the largest array."""
        return max((a.size for a in self.arrays.values() if a is not None), default=0)

    @property
    def size_of_row(self) -> int:
        """The number of elements in one row of all arrays together."""
        present = (array for array in self.arrays.values() if array is not None)
        return sum(math.prod(array.shape[1:]) for array in present)

    @property
    def flat(self) -> bool:
        """Whether every array has rows and columns only."""
        return all(a is None or a.ndim == 2 for a in self.arrays.values())

    @property
    def wide(self) -> bool:
        """Whether any array is binary64."""
        return any(a is not None and a.dtype == np.float64 for a in self.arrays.values())

    def order(self, name: str) -> npt.NDArray[np.intp]:
        """The place of each of an output's elements, as users see them, in the canonical array;
        that may have more: the gradient of the key that stands for an attention's sink."""
        shape = self.shapes[name]
        return np.asarray(self.restore(name, np.arange(math.prod(shape)).reshape(shape)))

    def in_axes(self, name: str, array: Array) -> Array:
        """An output, from the axes that users see to the canonical ones; 0 where users see none."""
        result = np.zeros(math.prod(self.shapes[name]), array.dtype)
        result[self.order(name).reshape(-1)] = array.reshape(-1)
        return result.reshape(self.shapes[name])

    @cached_property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        return all(a is None or bool(_finite(a).all()) for a in self.arrays.values())

    def finite_at(self, name: str, flat: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Whether the rows of an output's elements, and the arrays that all rows share, are
        finite."""
        shared, by_row = True, np.ones(self.rows, bool)
        for array in self.arrays.values():
            if array is None:
                continue
            finite = _finite(array).all(axis=tuple(range(1, array.ndim)))
            if len(array) == self.rows:
                by_row &= finite
            else:
                shared = shared and bool(finite.all())
        if not shared or not self.rows_of[name]:
            return np.full(flat.shape, shared and bool(by_row.all()))
        return by_row[flat // max(math.prod(self.shapes[name][1:]), 1)]

    def lettered(self) -> dict[str, Shape]:
        """The shapes of the inputs that are present: an axis for the rows and one for each
        letter."""
        return {
            name: array.shape[0 if argument.rows else 1 :][: argument.rows + len(argument.own)]
            for name, argument in self.signature.takes.items()
            if (array := self.arrays.get(name)) is not None
        }

    def take(self, rows: Any) -> dict[str, Array | None]:
        """The arrays at some of the rows."""
        return {
            name: array if array is None or len(array) == 1 != self.rows else array[rows]
            for name, array in self.arrays.items()
        }

    def pick(self, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> dict[str, Any]:
        """The arrays' elements at (row, column) pairs, one in each row."""
        return {
            name: None if array is None else _at(array, rows, columns)[:, None]
            for name, array in self.arrays.items()
        }

    def columns(self, columns: npt.NDArray[np.intp]) -> dict[str, Array | None]:
        """The arrays at some of the columns, in all rows."""
        return {
            name: array if array is None or array.shape[-1] == 1 else array[:, columns]
            for name, array in self.arrays.items()
        }


def _finite(array: Array) -> npt.NDArray[np.bool_]:
    if array.dtype.kind in "iub":
        return np.ones(array.shape, bool)
    return np.asarray(np.isfinite(array))


def _at(array: Array, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> Array:
    return array[
        rows if len(array) > 1 else 0 * rows, columns if array.shape[-1] > 1 else 0 * columns
    ]


def canonical(signature: Signature, prepared: Prepared) -> Canonical:
    """The canonical question. Raises ValueError where shapes do not fit the signature."""
    signature = prepared.signature or signature
    inputs, pieces = _joined(signature, prepared.inputs)
    lengths, leading = lengths_of(signature, inputs)
    letters = list(dict.fromkeys(x for taken in signature.takes.values() for x in taken.own))
    rows = math.prod(leading)
    largest = max(signature.takes.values(), key=lambda argument: len(argument.letters))
    arrays: dict[str, Array | None] = {}
    for name, array in inputs.items():
        argument = signature.takes.get(name) or largest
        arrays[name] = None if array is None else _flattened(argument, array, leading, letters)
    shapes = {
        name: (rows if output.rows else 1, *_own_shape(output, letters, lengths))
        for name, output in signature.gives.items()
    }

    def restore(name: str, array: Array) -> Any:
        output = signature.gives[name]
        after = tuple(lengths[letter] for letter in output.own)
        if output.several:
            return _apart(array, pieces[output.own])
        return prepared.restore(name, array.reshape((*leading, *after) if output.rows else after))

    by_row = {name: output.rows for name, output in signature.gives.items()}
    return Canonical(signature, arrays, prepared.params, rows, shapes, by_row, restore)


def _joined(
    signature: Signature, inputs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[tuple[str, ...], list[Shape]]]:
    """The inputs, each list as one array; and the shapes of the lists' arrays, by letters.

    Raises ValueError where lists that belong together do not have the same shapes.
    """
    joined, pieces = dict(inputs), dict[tuple[str, ...], list[Shape]]()
    for name, argument in signature.takes.items():
        if not argument.several or inputs.get(name) is None:
            continue
        shapes = [array.shape for array in inputs[name]]
        if pieces.setdefault(argument.own, shapes) != shapes:
            raise ValueError(
                f"{name} has shapes {shapes}: lists with the same letters must have equal shapes."
            )
        joined[name] = np.concatenate([*(a.reshape(-1) for a in inputs[name]), np.empty(0, "f2")])
        if len({array.dtype for array in inputs[name]}) == 1:
            joined[name] = joined[name].astype(inputs[name][0].dtype)
    return joined, pieces


def _apart(array: Array, shapes: list[Shape]) -> tuple[Array, ...]:
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = np.split(array.reshape(-1), ends[:-1]) if shapes else []
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))


def lengths_of(signature: Signature, inputs: Mapping[str, Any]) -> tuple[dict[str, int], Shape]:
    """The length of every letter, and the leading axes. Raises ValueError where they differ."""
    everywhere = (*signature.takes.values(), *signature.gives.values())
    lengths = {letter: int(letter) for a in everywhere for letter in a.own if letter.isdigit()}
    owner: dict[str, str] = {}
    leading: list[tuple[str, Shape]] = []
    for name, argument in signature.takes.items():
        array = inputs.get(name)
        if array is None:
            continue
        first = array.ndim - len(argument.own)
        own = list(zip(argument.own, array.shape[first:], strict=False))
        fits = all(lengths[letter] == n for letter, n in own if letter.isdigit())
        if first < 0 or (first and not argument.rows) or not fits:
            raise ValueError(
                f"{name} has shape {array.shape}: it must be {name}[{' '.join(argument.letters)}]."
            )
        if argument.rows:
            leading.append((name, array.shape[:first]))
        for letter, length in own:
            if lengths.setdefault(letter, length) != length:
                raise ValueError(
                    f"{name} has shape {array.shape}, whose {letter} is {length}, and "
                    f"{owner[letter]}'s is {lengths[letter]}: they must be equal."
                )
            owner.setdefault(letter, name)
    shapes = {shape for _, shape in leading}
    try:
        return lengths, shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " and ".join(f"{name}'s are {shape}" for name, shape in leading)
        raise ValueError(f"The leading axes do not broadcast: {shown}.") from None


def _flattened(argument: Argument, array: Array, leading: Shape, letters: list[str]) -> Array:
    if argument.rows:
        own_lengths = array.shape[array.ndim - len(argument.own) :]
        if array.shape[: array.ndim - len(argument.own)] != leading:
            array = np.broadcast_to(array, leading + own_lengths)
        array = array.reshape((math.prod(leading), *own_lengths))
    else:
        array = array[None]
    return array[..., None] if len(letters) <= 1 and not argument.own else array


def _own_shape(argument: Argument, letters: list[str], lengths: Mapping[str, int]) -> Shape:
    """The axes after the rows; one of length 1 where the op has one letter and the array none."""
    shape = tuple(lengths[letter] for letter in argument.own)
    return shape or ((1,) if len(letters) <= 1 else ())
