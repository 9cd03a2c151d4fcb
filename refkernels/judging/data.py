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
from collections.abc import Callable, Iterable, Mapping
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
Drawn = dict[str, Doubles]
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

    def with_special(self, names: Iterable[str]) -> str:
        """The input in which `special` has its values: the first with rows, else the first."""
        others = [name for name in names if name != self.cotangent]
        return next((name for name in others if self.along[name] is not None), [*others, ""][0])


class Numbers(NamedTuple):
    """Numbers, by the method of `Filling` and what it is given, and the name under which they are
    asked."""

    name: str
    method: str
    given: tuple[Any, ...] = ()


def _of_rows(change: Callable[..., None]) -> Callable[..., Drawn]:
    """Typical numbers, of which the rows of the first input with rows are changed."""

    def draw(filling: Filling, *given: Any) -> Drawn:
        drawn = filling.typical()
        if (name := filling.first) and drawn[name].size:
            change(filling, _rows(drawn[name], filling.roles.along[name]), *given)
        return drawn

    return draw


@dataclass(frozen=True, eq=False)
class Filling:
    """Arrays to be filled, by name, each method with other numbers."""

    rng: Rng
    shapes: Shapes
    roles: InputRoles
    format: Format

    def of(self, numbers: Numbers) -> Drawn:
        drawn: Drawn = getattr(self, numbers.method)(*numbers.given)
        return drawn

    @property
    def first(self) -> str:
        """The first input with rows, if it is to be filled."""
        return next((name for name in self.shapes if name == self.roles.first), "")

    def each(self, draw: Callable[[Any], Any]) -> Drawn:
        """Every array by itself."""
        return {name: draw(shape) for name, shape in self.shapes.items()}

    def typical(self) -> Drawn:
        return self.each(self.rng.standard_normal)

    def positive(self) -> Drawn:
        return self.each(lambda shape: self.rng.uniform(0.25, 1.0, shape))

    def zeros(self) -> Drawn:
        return self.each(np.zeros)

    def powers(self) -> Drawn:
        return self.each(lambda s: np.exp2(self.rng.integers(-4, 5, s)) * self._signs(s))

    def _signs(self, shape: Any) -> Any:
        return self.rng.choice((-1.0, 1.0), shape)

    def exact(self) -> Drawn:
        """Odd integers of more bits than a narrower format has in the first input; -1, 0 and 1 in
        the others. All sums stay below 2^p with the accumulator's p: in a longer row, the remaining
        places of the first input are 0."""
        bits = {24: 12, 53: 26}.get(self.format.p, self.format.p)
        longest, (first, *others) = longest_exact(self.format) // 2, self.shapes.items()
        half = self.rng.integers(2 ** (bits - 2), 2 ** (bits - 1), first[1])
        drawn = {first[0]: (2.0 * half + 1.0) * self._signs(first[1])}
        axis = self.roles.along[first[0]]
        if axis is not None and first[1] and first[1][axis] > longest:
            rows = _rows(drawn[first[0]], axis)
            rows[..., ~self._kept(rows.shape[-1], longest)] = 0.0
        return drawn | {name: self.rng.choice((-1.0, 0.0, 1.0), shape) for name, shape in others}

    @_of_rows
    def one_hot(self, rows: Doubles) -> None:
        hot = self.rng.integers(0, rows.shape[-1], rows.shape[:-1])
        rows[...] = np.where(np.arange(rows.shape[-1]) == hot[..., None], 4.0 * rows, 0.0)

    def few_rows(self) -> Drawn:
        """Few rows of the cotangent count: a gradient summed over all rows has few terms."""
        drawn = self.typical()
        if (dy := drawn.get(self.roles.cotangent or "")) is not None and dy.ndim:
            dy[~self._kept(len(dy), FEW)] = 0.0
        return drawn

    @_of_rows
    def few(self, rows: Doubles, void: float) -> None:
        """Beside a void that is not 0, the largest number of a row lies inside, or at an end."""
        n = rows.shape[-1]
        rows[..., ~self._kept(n, FEW)] = void
        number = self.rng.permutation(rows[..., 0].size).reshape(rows.shape[:-1])
        inside = self.rng.integers(n // 4, n - n // 4) if void else 0
        for k, place in enumerate((inside, 0, n - 1) if void else ()):
            rows[number % 4 == k, place] = PEAK

    def _kept(self, n: int, count: int) -> npt.NDArray[np.bool_]:
        """So many of n places: at both ends, where tiles are missed, and between."""
        kept, ends = np.zeros(n, np.bool_), min(count // 4, n // 2)
        kept[:ends] = kept[n - ends :] = True
        kept[self.rng.permutation(n)[: count - 2 * ends]] = True
        return kept

    @_of_rows
    def two_valued(self, rows: Doubles) -> None:
        n, batch = rows.shape[-1], (*rows.shape[:-1], 1)
        parts = self.rng.integers(1, max(n, 2), batch)
        middle = self.rng.choice((0.0, 1.0, -3.0, 10.0), batch)
        step = np.exp2(self.rng.integers(-2, 3, batch))
        rows[...] = middle + np.where(np.arange(n) < parts, step, -step)

    @_of_rows
    def ordered(self, rows: Doubles) -> None:
        rows.sort()
        up = self.rng.random((*rows.shape[:-1], 1)) < 0.5
        rows[...] = np.where(up, rows, rows[..., ::-1])

    @_of_rows
    def throughout(self, rows: Doubles) -> None:
        number = np.arange(math.prod(rows.shape[:-1])).reshape(rows.shape[:-1])
        for k, value in enumerate((-math.inf, -(2.0**30), math.inf, 2.0**30)):
            rows[number % 5 == k] = value

    def alike(self) -> Drawn:
        of_shape = {shape: self.rng.standard_normal(shape) for shape in self.shapes.values()}
        return self.each(lambda shape: of_shape[shape].copy())

    def scales(self) -> Drawn:
        most = {5: 6, 8: 30, 11: 200}[(self.format.emax + 1).bit_length()]
        if len(self.shapes) == 1:
            emax = self.format.emax
            most = max(most, emax // 2 - 4 if self.roles.first else emax - 2)
        drawn = self.typical()
        for name, array in drawn.items():
            axis, shape = self.roles.along[name], list(array.shape)
            if axis is not None and len(shape) >= -axis:  # an einsum's case may have fewer letters
                shape[axis] = 1
            array *= np.exp2(self.rng.integers(-most, most + 1, shape))
        return drawn

    def graded(self) -> Drawn:
        """Products of like size, where the first input's numbers differ by 2^20 from place to
        place, and the others' in the opposite sense."""
        most, drawn = min(self.format.p // 2, 10), self.typical()
        name = self.roles.first or ""
        axis = self.roles.along.get(name) or -1
        if len(self.shapes.get(name, ())) < -axis:
            return drawn
        letter = self.roles.arguments[name].own[axis]
        powers = np.exp2(self.rng.integers(-most, most + 1, self.shapes[name][axis]))
        for other, array in drawn.items():
            own = self.roles.arguments[other].own
            place = own.index(letter) - len(own) if letter in own else 0
            if place and array.shape[place] == powers.size:  # not a part of it, as in a group
                factors = powers if other == name else 1.0 / powers
                array *= factors.reshape(-1, *(1,) * (-1 - place))
        return drawn

    def shifted(self) -> Drawn:
        most, drawn = self.format.p // 2, self.typical()
        if self.first and (x := drawn[self.first]).ndim:
            axes = self.roles.related[self.first]
            batch = [1 if i - x.ndim in axes else n for i, n in enumerate(x.shape)]
            x += np.exp2(self.rng.uniform(most / 2, most, batch)) * self._signs(batch)
        return drawn

    def negative(self) -> Drawn:
        drawn = self.positive()
        if self.roles.first is None:
            return {name: -array for name, array in drawn.items()}
        if name := self.first:
            drawn[name] = self.rng.standard_normal(self.shapes[name]) - 2.0**10
        return drawn

    def small(self, base: str, share: float) -> Drawn:
        """The first input by 2^-6 to 2^-12, a share of the times: an eps, or a cut, shows there."""
        drawn, name = getattr(self, base)(), self.roles.first or next(iter(self.shapes))
        if name in drawn and self.rng.random() < share:
            drawn[name] = drawn[name] * np.exp2(-self.rng.integers(6, 13))
        return drawn

    def mixed(self) -> Drawn:
        """Rows of several families side by side, and constant rows and rows of zeros among them."""
        kinds = (self.typical, self.two_valued, self.scales, self.one_hot, self.shifted)
        drawn = [draw() for draw in kinds]
        result, name = drawn[0], self.roles.first or next(iter(self.shapes), "")
        if name not in result or not result[name].size or not result[name].ndim:
            return result
        axis = self.roles.along[name]
        views = [_rows(arrays[name], -1 if axis is None else axis) for arrays in drawn]
        which = self.rng.integers(0, len(kinds) + 2, views[0].shape[:-1])
        for i, view in enumerate(views):
            views[0][which == i] = view[which == i]
        if axis is not None:
            views[0][which == len(kinds)] = views[0][which == len(kinds)][..., :1]
            views[0][which == len(kinds) + 1] = 0.0
        return result

    def special(self) -> Drawn:
        """Special values in the first input, of a different kind in each row; every fourth row has
        none. Elements that have nothing to do with each other take all kinds in turn. A cotangent
        has none: whether an infinite one gives NaN or infinity depends on the form."""
        drawn, name = self.typical(), self.roles.with_special(self.shapes)
        if not name or not drawn[name].size * drawn[name].ndim:
            return drawn
        small = self.format.min_subnormal * 3.0, -self.format.min_normal
        kinds = (math.nan, math.inf, -math.inf, -0.0, *small)
        size, axis = drawn[name].size, self.roles.along[name]
        if axis is None:
            places = self.rng.permutation(size)[: max(size // 4, len(kinds))]
            np.put(drawn[name], places, np.resize(kinds, places.size))
            return drawn
        rows, start = _rows(drawn[name], axis), int(self.rng.integers(0, len(kinds)))
        n = rows.shape[-1]
        for number, index in enumerate(np.ndindex(*rows.shape[:-1])):
            if number % 4 != 3:
                places = self.rng.integers(0, n, max(n // 16, 1))
                rows[index][places] = kinds[(start + number) % len(kinds)]
        return drawn

    def nan_in(self, name: str) -> Drawn:
        """NaN in a few places of one input, where others have zeros: NaN times 0 is NaN."""
        drawn = self.typical()
        for other, array in drawn.items():
            if other != name:
                array *= self.rng.random(array.shape) < 0.75
        if name in drawn and (size := drawn[name].size):
            np.put(drawn[name], self.rng.integers(0, size, max(size // 16, 1)), math.nan)
        return drawn


def longest_exact(format: Format) -> int:
    """The number of terms that `exact` allows."""
    bits = {24: 12, 53: 26}.get(format.p, format.p)
    return min(2 ** (max(format.p, BINARY32.p) - bits), int(format.max / 2**bits))


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
