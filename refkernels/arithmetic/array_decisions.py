"""NumPy fallbacks of the kernels of `decisions`, on whole arrays.

Widths are decided by the exact test alone, which the kernels' quick test never contradicts. `small`
says when a fallback runs.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.bits import EXPONENT, LEAST, OUTWARD, ROOM, SIGNIFICAND
from refkernels.arithmetic.eft import two_sum

Array = npt.NDArray[Any]
Format = tuple[int, int, int]
_sum = two_sum.py_func


def columns(hi: Array, *parts: Array) -> tuple[Array, ...]:
    """The parts beside hi; a short one is constant (see `blocks.flat`)."""
    return tuple(part if part.size == hi.size else part[:1] for part in parts)


def exponents(hi: Array, lo: Array) -> Array:
    """`formats.exponent_of`, as int64."""
    mantissa, exponent = np.frexp(hi)
    below = (np.abs(mantissa) == 0.5) & (lo != 0.0) & ((lo > 0.0) != (hi > 0.0))
    return exponent.astype(np.int64) - 1 - below


def nearest_units(t: Array, lo: Array) -> Array:
    """The integers nearest to t + lo. lo is tiny and only breaks ties; where it is 0, ties go to
    even."""
    nearest = np.rint(t)
    fraction = t - nearest
    nearest += (fraction == 0.5) & (lo > 0.0)
    nearest -= (fraction == -0.5) & (lo < 0.0)
    return nearest


def rounded_pairs(hi: Array, lo: Array, scale: Array | int, format: Format) -> Array:
    """`formats.round_pair`."""
    p, emin, emax = format
    q = np.maximum(exponents(hi, lo) + scale, emin) - p + 1
    result = np.ldexp(nearest_units(np.ldexp(hi, scale - q), lo), q)
    result = np.where(np.abs(result) >= np.ldexp(2.0, emax), np.inf, result)
    return np.where((hi == 0.0) | ~np.isfinite(hi), hi, np.copysign(result, hi))


def rounded_ends(
    hi: Array, lo: Array, radius: Array, scale: Array, format: Format
) -> tuple[Array, Array]:
    """`decisions.rounded_ends`."""
    low, high = _moved(*_directed(hi, lo, -radius), 1.0), _moved(*_directed(hi, lo, radius), -1.0)
    return rounded_pairs(*low, scale, format), rounded_pairs(*high, scale, format)


def _moved(hi: Array, lo: Array, side: float) -> tuple[Array, Array]:
    neighbour = np.nextafter(hi, np.copysign(np.inf, lo))
    midpoint = (lo != 0.0) & ((lo > 0.0) == (side > 0.0)) & (2.0 * lo == neighbour - hi)
    head = np.where(midpoint, neighbour, hi)
    tail = np.where(midpoint, -lo, np.where(lo == 0.0, side * 2.0**-1074, lo))
    zero = hi == 0.0
    return np.where(zero, np.copysign(0.0, side), head), np.where(zero, 0.0, tail)


def _directed(hi: Array, lo: Array, radius: Array) -> tuple[Array, Array]:
    s, e = _sum(lo, radius)
    s = np.where((radius < 0.0) & (e < 0.0), np.nextafter(s, -np.inf), s)
    s = np.where((radius > 0.0) & (e > 0.0), np.nextafter(s, np.inf), s)
    pair: tuple[Array, Array] = _sum(hi, s)
    return pair


def same_float(a: Array, b: Array) -> Array:
    """Where a and b are equal, zeros by their sign; a NaN equals nothing."""
    return (a == b) & (np.signbit(a) == np.signbit(b))


def _clear(hi: Array, lo: Array, radius: Array, scale: Array, format: Format) -> Array:
    """What `decisions._mark_doubtful` does not mark: all of the interval rounds as hi does."""
    p, emin, emax = format
    h, reach = np.abs(hi), np.abs(lo) + radius
    inside = (h > 2.0 ** max(emin + 1, LEAST)) & (h < 2.0**emax) & (scale == 0)
    if p == 53:
        bits = h.view(np.int64)
        unit = np.where((bits & SIGNIFICAND) == 0, 2.0**-54, 2.0**-53)
        return inside & (reach < (bits & EXPONENT).view(np.float64) * unit * ROOM)
    half, mask = cut(p)
    low = (h - reach).view(np.int64) + (half - OUTWARD)
    high = (h + reach).view(np.int64) + (half + OUTWARD)
    return inside & (((low ^ high) & mask) == 0)


def cut(p: int) -> tuple[int, int]:
    """Half a unit of the last of p places, as bits of a float64, and a mask that cuts off the bits
    below that place."""
    return 1 << (52 - p), ~((1 << (53 - p)) - 1)


def _clearly_rounded(hi: Array, p: int) -> Array:
    """`decisions._round_clear`."""
    if p == 53:
        return hi
    half, mask = cut(p)
    rounded: Array = ((hi.view(np.int64) + half) & mask).view(np.float64)
    return rounded


def _doubtful(
    hi: Array, lo: Array, radius: Array, scale: Array, format: Format
) -> tuple[Array, Array, Array, Array, Array]:
    """Which elements the quick test leaves open, and their hi, lo, radius and scale."""
    places = np.flatnonzero(~_clear(hi, lo, radius, scale, format))
    lo, radius, scale = (p[places] if p.size == hi.size else p for p in (lo, radius, scale))
    return places, hi[places], lo, radius, scale


def _undecided(hi: Array, lo: Array, radius: Array, scale: Array, format: Format) -> Array:
    ends = rounded_ends(hi, lo, radius, scale, format)
    return (radius != 0.0) & ~np.isinf(hi) & ~same_float(*ends)


def undecided_roundings(
    hi: Array, lo: Array, radius: Array, scale: Array, format: Format, undecided: Array
) -> None:
    lo, radius, scale = columns(hi, lo, radius, scale)
    with np.errstate(all="ignore"):
        undecided[:] = False
        places, hi, lo, radius, scale = _doubtful(hi, lo, radius, scale, format)
        undecided[places] = _undecided(hi, lo, radius, scale, format)


def round_elements(
    hi: Array,
    lo: Array,
    radius: Array,
    scale: Array,
    format: Format,
    values: Array,
    certified: Array,
) -> None:
    lo, radius, scale = columns(hi, lo, radius, scale)
    with np.errstate(all="ignore"):
        values[:], certified[:] = _clearly_rounded(hi, format[0]), True
        places, hi, lo, radius, scale = _doubtful(hi, lo, radius, scale, format)
        values[places] = rounded_pairs(hi, lo, scale, format)
        certified[places] = ~_undecided(hi, lo, radius, scale, format)


def uncertainties(
    hi: Array, lo: Array, radius: Array, scale: Array, format: Format, result: Array
) -> None:
    p, emin, _ = format
    lo, radius, scale = columns(hi, lo, radius, scale)
    with np.errstate(all="ignore"):
        head, tail = _directed(hi, lo, np.where(hi > 0.0, -radius, radius))
        crosses = (head == 0.0) | ((head > 0.0) != (hi > 0.0))
        floor = np.where(crosses, emin, np.maximum(exponents(head, tail) + scale, emin))
        units = np.ldexp(radius, scale - (floor - p + 1))
        result[:] = np.where((radius == 0.0) | np.isinf(hi), 0.0, units)


def undecided_widths(
    hi: Array,
    lo: Array,
    radius: Array,
    scale: Array,
    format: Format,
    limit: float,
    undecided: Array,
) -> None:
    widths = np.empty(hi.size)
    uncertainties(hi, lo, radius, scale, format, widths)
    undecided[:] = ~(widths <= limit)


def relative_radii(hi: Array, factor: float, radius: Array) -> None:
    with np.errstate(all="ignore"):
        radius[:] = np.where(np.isfinite(hi), np.abs(hi) * factor, 0.0)
