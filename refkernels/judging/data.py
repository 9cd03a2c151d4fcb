"""Numbers that make faults visible, for the inputs of any op, by the roles of its axes.

    typical       standard normal numbers
    positive      numbers of one sign: errors of all terms add up
    exact         partial sums stay below 2^p, so that every right order gives the same bits
    one_hot       one number that is not 0 in each row: an answer has one term
    few           few numbers that count in each row: the bound of a long row counts few terms
    powers        powers of two: products are exact
    two_valued    c + d and c - d: a wrong statistic, or one of a part of the row, is off by O(1)
    scales        every row on its own scale, and every number that is a question of its own
    ordered       every row ascends or descends: the largest number so far is always new, or never
    throughout    rows of one value each, infinite or large: what a maximum begins with shows
    graded        large and small terms in one row, whose factors are small and large
    shifted       a large mean and a small spread: squares cancel, exponentials overflow
    negative      every product and score is negative: a maximum that begins at 0 is off
    mixed         rows of all these in one batch
    zeros         nothing but zeros
    alike         the same numbers in all inputs of one shape
    special       NaN, infinities, -0 and subnormals in some rows of the first input
    nan_in        NaN in another input, and zeros in the others

A row runs along the last of the letters that are summed over or coupled; only `shifted` looks at
all of them. All numbers are float64, to be rounded once to the inputs' format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.formats import BINARY32, Format
from refkernels.ops.letters import Argument

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Rng = np.random.Generator
Shapes = Mapping[str, tuple[int, ...]]
FEW = 64  # numbers of a row
PEAK = 1536.0  # whose exponential no format holds, nor that of what is left of it by another pivot
VOIDS = (0.0, -64.0)  # what adds next to nothing to a row, to one of exponentials


@dataclass(frozen=True)
class InputRoles:
    """The arrays that a direction of an op takes, and the letters that some output is summed over
    or coupled along. `positive`: inputs that are never negative. `cotangent`: the incoming gradient
    of a backward question."""

    arguments: Mapping[str, Argument]
    letters: frozenset[str]
    positive: frozenset[str]
    cotangent: str | None

    @cached_property
    def related(self) -> dict[str, tuple[int, ...]]:
        """The axes of each array, counted from the end, that have such a letter."""
        return {
            name: tuple(i - len(a.own) for i, x in enumerate(a.own) if x in self.letters)
            for name, a in self.arguments.items()
        }

    @cached_property
    def along(self) -> dict[str, int | None]:
        """The axis of each along which rows run: the last; None if its elements are unrelated."""
        return {name: axes[-1] if axes else None for name, axes in self.related.items()}

    @property
    def first(self) -> str | None:
        """The first input with rows."""
        return next((name for name, axes in self.related.items() if axes), None)


Draw = Callable[[Rng, Shapes, InputRoles, Format], dict[str, Doubles]]


class Numbers(NamedTuple):
    """Numbers, and the name under which they are asked."""

    name: str
    draw: Draw


def _each(draw: Callable[[Rng, tuple[int, ...]], Doubles]) -> Draw:
    """Every array by itself."""
    return lambda rng, shapes, *_: {name: draw(rng, shape) for name, shape in shapes.items()}


typical = _each(lambda rng, shape: rng.standard_normal(shape))
positive = _each(lambda rng, shape: rng.uniform(0.25, 1.0, shape))
zeros = _each(lambda _, shape: np.zeros(shape))
powers = _each(
    lambda rng, shape: np.exp2(rng.integers(-4, 5, shape)) * rng.choice((-1.0, 1.0), shape)
)


def exact(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
    """Odd integers of more bits than a narrower format has in the first input; -1, 0 and 1 in the
    others. All sums stay below 2^p with the accumulator's p: in a longer row, the remaining places
    of the first input are 0."""
    bits = {24: 12, 53: 26}.get(format.p, format.p)
    longest = longest_exact(format) // 2
    drawn = {}
    for i, (name, shape) in enumerate(shapes.items()):
        if i == 0:
            half = rng.integers(2 ** (bits - 2), 2 ** (bits - 1), shape)
            drawn[name] = (2.0 * half + 1.0) * rng.choice((-1.0, 1.0), shape)
            axis = roles.along[name]
            if axis is not None and shape and shape[axis] > longest:
                rows = _rows(drawn[name], axis)
                rows[..., ~_kept(rng, rows.shape[-1], longest)] = 0.0
        else:
            drawn[name] = rng.choice((-1.0, 0.0, 1.0), shape)
    return drawn


def longest_exact(format: Format) -> int:
    """The number of terms that `exact` allows."""
    bits = {24: 12, 53: 26}.get(format.p, format.p)
    accumulator = max(format.p, BINARY32.p)
    return min(2 ** (accumulator - bits), int(format.max / 2**bits))


def _of_rows(change: Callable[[Rng, Doubles], None]) -> Draw:
    """Typical numbers, of which the rows of the first input with rows are changed."""

    def draw(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
        drawn = typical(rng, shapes, roles, format)
        if (name := roles.first or "") in shapes and drawn[name].size:
            change(rng, _rows(drawn[name], roles.along[name]))
        return drawn

    return draw


@_of_rows
def one_hot(rng: Rng, rows: Doubles) -> None:
    hot = rng.integers(0, rows.shape[-1], rows.shape[:-1])
    rows[...] = np.where(np.arange(rows.shape[-1]) == hot[..., None], 4.0 * rows, 0.0)


def few_rows(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
    """Few rows of the cotangent count, so that a gradient summed over all rows has few terms."""
    drawn = typical(rng, shapes, roles, format)
    if (name := roles.cotangent or "") in shapes and drawn[name].ndim:
        drawn[name][~_kept(rng, len(drawn[name]), FEW)] = 0.0
    return drawn


def few(void: float) -> Draw:
    """Beside a void that is not 0, the largest number of a row lies inside, or at an end."""

    @_of_rows
    def draw(rng: Rng, rows: Doubles) -> None:
        n = rows.shape[-1]
        rows[..., ~_kept(rng, n, FEW)] = void
        number = rng.permutation(rows[..., 0].size).reshape(rows.shape[:-1])
        for k, place in enumerate((rng.integers(n // 4, n - n // 4), 0, n - 1) if void else ()):
            rows[number % 4 == k, place] = PEAK

    return draw


def _kept(rng: Rng, n: int, count: int) -> npt.NDArray[np.bool_]:
    """So many of n places: at both ends, where tiles are missed, and between."""
    kept, ends = np.zeros(n, np.bool_), min(count // 4, n // 2)
    kept[:ends] = kept[n - ends :] = True
    kept[rng.permutation(n)[: count - 2 * ends]] = True
    return kept


@_of_rows
def two_valued(rng: Rng, rows: Doubles) -> None:
    n, batch = rows.shape[-1], (*rows.shape[:-1], 1)
    parts = rng.integers(1, max(n, 2), batch)
    middle = rng.choice((0.0, 1.0, -3.0, 10.0), batch)
    step = np.exp2(rng.integers(-2, 3, batch))
    rows[...] = middle + np.where(np.arange(n) < parts, step, -step)


@_of_rows
def ordered(rng: Rng, rows: Doubles) -> None:
    rows.sort()
    rows[...] = np.where(rng.random((*rows.shape[:-1], 1)) < 0.5, rows, rows[..., ::-1])


@_of_rows
def throughout(rng: Rng, rows: Doubles) -> None:
    number = np.arange(math.prod(rows.shape[:-1])).reshape(rows.shape[:-1])
    for k, value in enumerate((-math.inf, -(2.0**30), math.inf, 2.0**30)):
        rows[number % 5 == k] = value


def alike(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
    of_shape = {shape: rng.standard_normal(shape) for shape in shapes.values()}
    return {name: of_shape[shape].copy() for name, shape in shapes.items()}


def scales(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
    most = {5: 6, 8: 30, 11: 200}[(format.emax + 1).bit_length()]
    if len(shapes) == 1:
        most = max(most, format.emax // 2 - 4 if roles.first else format.emax - 2)
    drawn = typical(rng, shapes, roles, format)
    for name, array in drawn.items():
        axis = roles.along[name]
        shape = list(array.shape)
        if axis is not None and len(shape) >= -axis:  # an einsum's case may have fewer letters
            shape[axis] = 1
        array *= np.exp2(rng.integers(-most, most + 1, shape))
    return drawn


def graded(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
    """Products of like size, where the first input's numbers differ by 2^20 from place to place,
    and the others' in the opposite sense."""
    most = min(format.p // 2, 10)
    drawn = typical(rng, shapes, roles, format)
    name = roles.first or ""
    axis = roles.along.get(name) or -1
    if len(shapes.get(name, ())) < -axis:
        return drawn
    letter = roles.arguments[name].own[axis]
    powers = np.exp2(rng.integers(-most, most + 1, shapes[name][axis]))
    for other, array in drawn.items():
        own = roles.arguments[other].own
        place = own.index(letter) - len(own) if letter in own else 0
        if place and array.shape[place] == powers.size:  # not a part of it, as in a group
            factors = powers if other == name else 1.0 / powers
            array *= factors.reshape(-1, *(1,) * (-1 - place))
    return drawn


def shifted(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
    most = format.p // 2
    drawn = typical(rng, shapes, roles, format)
    name = roles.first or ""
    if name in shapes and (x := drawn[name]).ndim:
        batch = [1 if i - x.ndim in roles.related[name] else n for i, n in enumerate(x.shape)]
        x += np.exp2(rng.uniform(most / 2, most, batch)) * rng.choice((-1.0, 1.0), batch)
    return drawn


def negative(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
    drawn = positive(rng, shapes, roles, format)
    if roles.first is None:
        return {name: -array for name, array in drawn.items()}
    if roles.first in shapes:
        drawn[roles.first] = rng.standard_normal(shapes[roles.first]) - 2.0**10
    return drawn


def small(base: Draw, share: float) -> Draw:
    """The first input by 2^-6 to 2^-12, a share of the times: an eps, or a cut, shows there."""

    def draw(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
        arrays, name = base(rng, shapes, roles, format), roles.first or next(iter(shapes))
        if name in arrays and rng.random() < share:
            arrays[name] = arrays[name] * np.exp2(-rng.integers(6, 13))
        return arrays

    return draw


def mixed(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
    """Rows of several families side by side, and constant rows and rows of zeros among them."""
    kinds = (typical, two_valued, scales, one_hot, shifted)
    drawn = [draw(rng, shapes, roles, format) for draw in kinds]
    result = drawn[0]
    name = roles.first or next(iter(shapes), "")
    if name not in shapes or not result[name].size or not result[name].ndim:
        return result
    axis = roles.along[name]
    views = [_rows(arrays[name], -1 if axis is None else axis) for arrays in drawn]
    which = rng.integers(0, len(kinds) + 2, views[0].shape[:-1])
    for i, view in enumerate(views):
        views[0][which == i] = view[which == i]
    constant = views[0][which == len(kinds)]
    if axis is not None:
        views[0][which == len(kinds)] = constant[..., :1]
        views[0][which == len(kinds) + 1] = 0.0
    return result


def special(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
    """Special values in the first input, of a different kind in each row; every fourth row has
    none. Elements that have nothing to do with each other take all kinds in turn. A cotangent has
    none: whether an infinite one gives NaN or infinity depends on the form."""
    drawn = typical(rng, shapes, roles, format)
    if (name := with_special(shapes, roles)) is None or not drawn[name].size * drawn[name].ndim:
        return drawn
    kinds = (math.nan, math.inf, -math.inf, -0.0, format.min_subnormal * 3.0, -format.min_normal)
    axis = roles.along[name]
    if axis is None:
        places = rng.permutation(drawn[name].size)[: max(drawn[name].size // 4, len(kinds))]
        np.put(drawn[name], places, np.resize(kinds, places.size))
        return drawn
    rows = _rows(drawn[name], axis)
    n = rows.shape[-1]
    start = int(rng.integers(0, len(kinds)))
    for number, index in enumerate(np.ndindex(*rows.shape[:-1])):
        if number % 4 != 3:
            places = rng.integers(0, n, max(n // 16, 1))
            rows[index][places] = kinds[(start + number) % len(kinds)]
    return drawn


def with_special(shapes: Shapes, roles: InputRoles) -> str | None:
    """The input in which `special` has its values: the first with rows, else the first."""
    others = [name for name in shapes if name != roles.cotangent]
    rowed = [name for name in others if roles.along[name] is not None]
    return next(iter(rowed or others), None)


def nan_in(name: str) -> Draw:
    """NaN in a few places of one input, where others have zeros: NaN times 0 is NaN."""

    def draw(rng: Rng, shapes: Shapes, roles: InputRoles, format: Format) -> Any:
        drawn = typical(rng, shapes, roles, format)
        for other, array in drawn.items():
            if other != name:
                array *= rng.random(array.shape) < 0.75
        if name in drawn and drawn[name].size:
            places = rng.integers(0, drawn[name].size, max(drawn[name].size // 16, 1))
            np.put(drawn[name], places, math.nan)
        return drawn

    return draw


def _rows(array: Doubles, axis: int | None) -> Doubles:
    """The array with its rows last; one row where an einsum's case has fewer letters."""
    if axis is None or array.ndim < -axis:
        return np.atleast_1d(array)
    return np.moveaxis(array, axis, -1)


def _wider(array: Array, *last: int) -> Array:
    """The array as the elements from the first, each so many on, of longer rows."""
    start, step, more = last
    wide = np.zeros((*array.shape[:-1], start + step * array.shape[-1] + more), array.dtype)
    view = wide[..., start : start + step * array.shape[-1] : step]
    view[...] = array
    return view


LAYOUTS = (  # of arrays of at least so many axes; whether all letters are of one length
    (2, False, np.asfortranarray),
    (2, True, np.asfortranarray),
    (1, False, lambda array: _wider(array, 1, 2, 0)),  # with gaps
    (2, False, lambda array: np.broadcast_to(array[:1], array.shape)),  # one row at all places
    (2, False, lambda array: _wider(array, 0, 1, 3)),  # rows of a wider matrix
    (1, False, lambda array: _wider(array.reshape(-1), 1, 1, 0).reshape(array.shape)),  # dense
)
