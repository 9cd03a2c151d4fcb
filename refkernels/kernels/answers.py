"""A function's answers by its kernels: the float64 tier, and the double-double tier.

Inputs of 32 bits and fewer go to float64 with a relative bound; what that leaves open, and float64
inputs, to whatever is asked later, such as double-doubles.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, small, tiers
from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.blocks import BLOCK, CACHED, spread
from refkernels.arithmetic.enclosure import Enclosure, Relative, trusted
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.interpreted import interpreted
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.ladder import Draft
from refkernels.arithmetic.question import Certify, Question
from refkernels.kernels.real_function import Array, Filler, RealFunction

_MANY = 1 << 20  # elements beyond which Python's work for a block costs more than a fuller cache
_INTERPRETED = 256  # elements that NumPy handles while Python handles one
_HUGE, _TINY = 2.0**200, 2.0**-200  # beyond them a Fast guarantees the sign only
# The exponent fields between them, without zeros and infinities, as an offset and a length.
_LOWEST, _SPREAD = np.uint64(1023 - 199), np.uint64(398)
# By format, where float32 numbers decide: whether to test, and the last bits of a midpoint.
_NO_TIES = (False, np.uint32(0), np.uint32(1))
_TIES = {
    "float32": (True, np.uint32(0), np.uint32(1)),
    "bfloat16": (True, np.uint32(0xFFFF), np.uint32(0x8000)),
}
Indices = npt.NDArray[np.intp]
Columns = tuple[Array, Array, Array, Array]  # hi, lo, radius, scale


def values(function: RealFunction, x: Array) -> Enclosure:
    """f(x) by the double-double tier alone, shaped like x."""
    return double_doubles(function.values, x)


def rounded(function: RealFunction, x: Array, format: Format) -> Array:
    """f(x), rounded once to the format, shaped like x: of narrow numbers by the float64 tier, and
    only where that leaves the rounding open by double-doubles. Whoever emulates a kernel of float32
    needs no other kernel compiled than that tier's."""
    if format.p > formats.BINARY32.p or x.dtype == np.float64:
        return values(function, to_float64(x)).round(format)[0]
    flat, question = np.ascontiguousarray(x).reshape(-1), Question.parse(("rounding", format))
    enclosure, still_open = _float64(function.fast, flat, question)
    answer = formats.round_to(enclosure.hi, format)
    if still_open.size:
        answer[still_open] = values(function, to_float64(flat[still_open])).round(format)[0]
    return answer.reshape(x.shape)


def double_doubles(kernel: Filler, x: Array) -> Enclosure:
    """What a kernel of the double-double tier gives, shaped like x."""
    return trusted(*_double_double(kernel, np.ascontiguousarray(x).reshape(-1))).reshape(x.shape)


def screened(
    fast: Fast | None, x: Any, certify: Certify, later: Callable[[Array, Question], Enclosure]
) -> Enclosure:
    """f(x), shaped like x, by the tiers of `fast`, and by `later` where these leave the question
    open, for flat arrays. Raises TypeError for other dtypes, ValueError for unknown questions."""
    question = Question.parse(certify)
    x = as_float_array(x, "x")
    flat = np.ascontiguousarray(x).reshape(-1)
    if fast is None or x.dtype == np.float64:
        return later(flat, question).reshape(x.shape)
    enclosure, still_open = _float64(fast, flat, question)
    tiers.answered("float64", flat.size - still_open.size)
    if not still_open.size:
        return enclosure.reshape(x.shape)  # its radius is not computed before it is read
    answer = Draft(enclosure.hi, 0.0, enclosure.radius)
    if fast.values is not None:
        sharper = double_doubles(fast.values, flat[still_open])
        answer.put(still_open, sharper)
        left = still_open[question.undecided(sharper)]
        tiers.answered("double_double", still_open.size - left.size)
        still_open = left
    if still_open.size:
        answer.put(still_open, later(flat[still_open], question))
    return answer.enclosure().reshape(x.shape)


def _float64(fast: Fast, x: Array, question: Question) -> tuple[Enclosure, Indices]:
    """The first tier for all of x (flat), and the elements that it leaves open. A rounding of a
    number that is tiny in the format is a zero of its sign: only between 0 and 2 _TINY, an element
    is not left open."""
    hi = np.empty(x.size)
    zeros = question.kind == "rounding" and question.format.min_subnormal > 4.0 * _TINY
    ties = _TIES.get(question.format.name) if question.kind == "rounding" else None
    factor = fast.error * (1.0 + 4.0 * fast.error)  # |hi - z| <= error |z| <= factor |hi|
    outward = factor + 2.0**-52
    open_places, tiny = [np.empty(0, np.intp)], [np.empty(0, np.intp)]

    def block(start: int, stop: int) -> None:
        with np.errstate(invalid="ignore"):  # a signalling NaN is data here
            part = x[start:stop].astype(np.float32, copy=False)
        values = hi[start:stop]
        fast.kernel(part, values)
        if ties is None and not _any_beyond(values):
            return
        marks = np.empty(stop - start, np.bool_)
        some_open, some_tiny = _judge(values, outward, ties or _NO_TIES, zeros, marks)
        if some_open:
            open_places.append(start + np.flatnonzero(marks))
        if some_tiny:
            tiny.append(start + np.flatnonzero((values != 0.0) & (np.abs(values) <= _TINY)))

    spread(x.size, block, BLOCK if x.size > _MANY else CACHED, timed=True)
    still_open = np.sort(np.concatenate(open_places), kind="stable")
    enclosure = trusted(hi, radius=Relative(factor))
    at = np.concatenate(tiny)
    if at.size:
        enclosure.radius[at], hi[at] = _TINY, np.copysign(_TINY, hi[at])
    if ties is None and question.kind != "enclosure":
        still_open = np.union1d(still_open, np.flatnonzero(question.undecided(enclosure)))
    return enclosure, still_open


@njit(nogil=True)
def _any_beyond(hi: Any) -> bool:
    """Whether some element may lie where a Fast guarantees only its sign, by one comparison of
    bits."""
    bits = hi.view(np.uint64)
    count = np.int64(0)
    for i in range(bits.size):
        exponent = (bits[i] >> np.uint64(52)) & np.uint64(0x7FF)
        count += np.int64((exponent - _LOWEST) > _SPREAD)
    return bool(count > 0)


@njit(nogil=True)
def _judge(hi: Any, outward: float, ties: Any, zeros: bool, marks: Any) -> tuple[bool, bool]:
    """Marks the elements that are left open. Returns whether there are any, and any tiny ones.

    Left open are elements beyond the range in which a Fast guarantees a relative error, but for
    tiny ones where `zeros`. Where ties = (requested, mask, tie) asks for a rounding, so are those
    whose interval may hold a boundary: its ends, moved outward by more than their error, are
    different float32, or one that is a midpoint of the narrower format, as its last bits show.
    """
    requested, mask, tie = ties
    left, tiny = np.int64(0), np.int64(0)
    for i in range(hi.size):
        size = abs(hi[i])
        ordinary = (size > 0.0) & (size < np.inf)
        small = ordinary & (size <= _TINY)
        beyond = (ordinary & (size >= _HUGE)) | (small & (not zeros))
        lower = np.float32(size - size * outward)
        upper = np.float32(size + size * outward)
        near = (lower != upper) | ((np.float32(lower).view(np.uint32) & mask) == tie)
        unfit = beyond | (ordinary & requested & near)
        left += np.int64(unfit)
        tiny += np.int64(small & zeros)
        marks[i] = unfit
    return bool(left > 0), bool(tiny > 0)


def _double_double(kernel: Filler, x: Array) -> Columns:
    columns = _columns(x.size)
    if small.allowance.covers(kernel, _INTERPRETED * x.size, kernel=kernel):
        with np.errstate(all="ignore"):
            interpreted(kernel)(to_float64(x), *columns)
        return columns

    def block(start: int, stop: int) -> None:
        kernel(to_float64(x[start:stop]), *(column[start:stop] for column in columns))

    spread(x.size, block)
    return columns


def _columns(size: int) -> Columns:
    """Empty columns for a kernel to fill."""
    return np.empty(size), np.empty(size), np.empty(size), np.empty(size, np.int64)
