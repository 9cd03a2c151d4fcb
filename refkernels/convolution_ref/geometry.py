"""The elements of x that an element of y is computed from, and the reverse, as integers.

On each axis, y at p has its taps t at p stride + t dilation - low of x. A table of places has -1
where there is no element; with several axes, places index the flattened array. `Source` is an array
with its grid: elements gathered from it are exact, and 0 where there is none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.scalars import as_count
from refkernels.arithmetic.wording import shown

Places = npt.NDArray[np.int64]
Padding = Literal["zeros", "replicated", "reflected", "circular"]
Array = npt.NDArray[Any]
_MOST_PLACES = 2**31


class Axis(NamedTuple):
    """`length` of x, `out` of y, and `taps` of the kernel; `low` and `high` are the padding."""

    length: int
    taps: int
    stride: int
    dilation: int
    low: int
    high: int

    @property
    def reach(self) -> int:
        """The number of elements that the taps span."""
        return max(self.dilation * (self.taps - 1) + 1, 0)

    @property
    def out(self) -> int:
        return (self.length + self.low + self.high - self.reach) // self.stride + 1

    def windows(self, beyond: Padding = "zeros") -> Places:
        """(out, taps): places of x; `beyond` its ends there is none, or another element."""
        p, t = np.arange(self.out)[:, None], np.arange(self.taps)
        place = p * self.stride + t * self.dilation - self.low
        last = max(self.length - 1, 0)
        if beyond == "replicated":
            return np.clip(place, 0, last)
        if beyond == "circular":
            return place % max(self.length, 1)
        if beyond == "reflected":
            folded = place % max(2 * last, 1)
            return np.minimum(folded, 2 * last - folded)
        return _within(place, self.length)

    def back(self) -> Places:
        """(length, taps): the places of y that have this element of x at this tap."""
        r, t = np.arange(self.length)[:, None], np.arange(self.taps)
        place, remainder = np.divmod(r + self.low - t * self.dilation, self.stride)
        return np.where(remainder == 0, _within(place, self.out), -1)

    def tiles(self, m: int) -> Places:
        """(out, m + taps - 1): places of x, the window of the tile of m in which y's element lies;
        for an axis with stride and dilation 1."""
        p, u = np.arange(self.out)[:, None], np.arange(m + self.taps - 1)
        return _within(p // m * m + u - self.low, self.length)

    def turned(self) -> Axis:
        """x's axis as the output of y's, with reversed taps; where stride and dilation are 1."""
        edge = self.taps - 1
        return self._replace(length=self.out, low=edge - self.low, high=edge - self.high)


def _within(place: Places, length: int) -> Places:
    return np.where((place >= 0) & (place < length), place, -1)


def joined(tables: Sequence[Places], lengths: Sequence[int]) -> Places:
    """The tables of all axes as one table of the flattened array, whose lengths are given."""
    places, missing = np.zeros((1, 1), np.int64), np.zeros((1, 1), bool)
    for table, length in zip(tables, lengths, strict=True):
        places_of_axis = table[None, :, None, :]
        shape = len(places) * len(table), places.shape[1] * table.shape[1]
        missing = (missing[:, None, :, None] | (places_of_axis < 0)).reshape(shape)
        places = (places[:, None, :, None] * length + places_of_axis).reshape(shape)
    return np.where(missing, -1, places)


@dataclass(frozen=True, eq=False)
class Grid:
    """The axes of a convolution."""

    axes: tuple[Axis, ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    @property
    def out(self) -> tuple[int, ...]:
        return tuple(axis.out for axis in self.axes)

    @property
    def taps(self) -> tuple[int, ...]:
        return tuple(axis.taps for axis in self.axes)

    @property
    def of_three_taps(self) -> bool:
        """Whether Winograd's forms apply: three taps and steps of one."""
        return all((a.taps, a.stride, a.dilation) == (3, 1, 1) for a in self.axes)

    @functools.cached_property
    def windows(self) -> Places:
        """(places of y, taps): places of x."""
        return joined([axis.windows() for axis in self.axes], self.lengths)

    def padded(self, beyond: Padding) -> Places:
        """The same, with elements of x beyond its ends."""
        return joined([axis.windows(beyond) for axis in self.axes], self.lengths)

    @functools.cached_property
    def back(self) -> Places:
        """(places of x, taps): places of y."""
        return joined([axis.back() for axis in self.axes], self.out)

    def tiles(self, m: int) -> Places:
        """(places of y, elements of a tile's window): places of x."""
        return joined([axis.tiles(m) for axis in self.axes], self.lengths)

    def turned(self) -> Grid:
        return Grid(tuple(axis.turned() for axis in self.axes))

    def changed(self, change: Callable[[Axis], Axis]) -> Grid:
        """The grid with every axis changed, if y keeps its shape; else this grid."""
        altered = Grid(tuple(change(axis) for axis in self.axes))
        return altered if altered.out == self.out else self


def undilated(axis: Axis) -> Axis:
    """Without dilation, from the same first tap."""
    return axis._replace(dilation=1, high=axis.high - axis.reach + axis.taps)


def swapped(axis: Axis) -> Axis:
    """With the end's padding at the front."""
    return axis._replace(low=axis.high, high=axis.low)


def causal(axis: Axis) -> Axis:
    """With all of the padding at the front."""
    return axis._replace(low=axis.low + axis.high, high=0)


def needed(axis: Axis) -> Axis:
    """With only the padding that y's windows need, the larger part at the end."""
    zeros = max((axis.out - 1) * axis.stride + axis.reach - axis.length, 0)
    return axis._replace(low=zeros // 2, high=zeros - zeros // 2)


def unstrided(axis: Axis) -> Axis:
    """With stride 1, and as many elements."""
    return axis._replace(stride=1, high=axis.out - 1 + axis.reach - axis.length - axis.low)


@dataclass(frozen=True, eq=False)
class Source:
    """An array (images, groups, channels, places + 1), with 0 at the last place, and its grid."""

    array: Array
    grid: Grid

    @staticmethod
    def of(array: Array, grid: Grid) -> Source:
        zero = np.zeros((*array.shape[:-1], 1), array.dtype)
        return Source(np.concatenate([array, zero], axis=-1), grid)

    def gathered(self, table: Places) -> Array:
        """(images, places, groups, channels, elements) at a table of places."""
        return np.moveaxis(self.array[..., table], -2, 1)

    def at(self, row: Places, table: Places) -> Array:
        """The same for some rows, each a place of an image: (rows, groups, channels, elements)."""
        image, place = np.divmod(row, max(len(table), 1))
        elements = self.array[image[:, None], :, :, table[place]]
        return np.moveaxis(elements, 1, -1)


def axes_of(
    lengths: Sequence[int], taps: Sequence[int], stride: Any, padding: Any, dilation: Any
) -> Grid:
    """The grid that these params describe. Raises TypeError for params that are not integers, and
    ValueError for a wrong number of them, for a kernel larger than the padded input, and for
    padding that makes 2^31 places of y."""
    rank = len(lengths)
    steps, wide = (
        _each(values, name, rank) for values, name in ((stride, "stride"), (dilation, "dilation"))
    )
    pads = _padding(padding, lengths, taps, steps, wide)
    per_axis = zip(lengths, taps, steps, wide, pads, strict=True)
    axes = tuple(Axis(n, k, s, d, low, high) for n, k, s, d, (low, high) in per_axis)
    for axis in axes:
        if axis.reach > axis.length + axis.low + axis.high:
            raise ValueError(
                f"weight spans {axis.reach} places of an axis that has "
                f"{axis.length + axis.low + axis.high}, padding included."
            )
    if (places := math.prod(axis.out for axis in axes)) >= _MOST_PLACES:
        raise ValueError(f"padding is {shown(padding)}: y would have {places} places.")
    return Grid(axes)


def _each(value: Any, name: str, rank: int, least: int = 1) -> list[int]:
    listed = list(value) if isinstance(value, list | tuple) else [value] * rank
    if len(listed) != rank:
        raise ValueError(
            f"{name} is {shown(value)}: give one number, or one for each of {rank} axes."
        )
    return [as_count(item, name, least) for item in listed]


def _padding(
    padding: Any, lengths: Sequence[int], taps: Sequence[int], steps: list[int], wide: list[int]
) -> list[tuple[int, int]]:
    rank = len(lengths)
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"padding is {shown(padding)}: it must be 'same', 'valid' or numbers.")
        if padding == "valid":
            return [(0, 0)] * rank
        free = [Axis(*axis, 0, 0) for axis in zip(lengths, taps, steps, wide, strict=True)]
        total = [
            max((math.ceil(a.length / a.stride) - 1) * a.stride + a.reach - a.length, 0)
            for a in free
        ]
        return [(zeros // 2, zeros - zeros // 2) for zeros in total]
    if isinstance(padding, list | tuple) and len(padding) == 2 * rank:
        ends = _each(padding, "padding", 2 * rank, 0)
        return list(zip(ends[::2], ends[1::2], strict=True))
    return [(zeros, zeros) for zeros in _each(padding, "padding", rank, 0)]
