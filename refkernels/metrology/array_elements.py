"""The NumPy fallback of `elements.compare`: the same figures, for whole arrays.

Names, units and cases are those of `elements`, which gives the reasons. `arithmetic.small` says
when a fallback runs.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.array_decisions import (
    Format,
    columns,
    exponents,
    nearest_units,
    rounded_ends,
    same_float,
)
from refkernels.arithmetic.eft import two_sum
from refkernels.metrology import special_values as flag
from refkernels.metrology.elements import SLACK

Array = npt.NDArray[Any]
_RIGHT = flag.CORRECT | flag.FAITHFUL


class Elements(NamedTuple):
    """The results of `elements.compare` for each element."""

    flags: Array
    error: Array
    uncertainty: Array
    absolute: Array
    certain: Array
    distance: Array

    def put(self, where: Array, *values: Any) -> None:
        """Sets the first fields, in order, of the elements where the mask is true."""
        for part, value in zip(self, values, strict=False):
            part[where] = value


def compare(parts: Sequence[Array], format: Format) -> Elements:
    """The figures of got against (hi + lo ± radius) 2^scale. `parts`: got, hi, lo, radius, scale;
    a constant lo, radius or scale may have length 1."""
    got, hi, *intervals = parts
    lo, radius, scale = (np.broadcast_to(part, hi.shape) for part in columns(hi, *intervals))
    flags, distance = np.zeros(hi.size, np.int64), np.zeros(hi.size, np.uint64)
    error, uncertainty, absolute, certain = np.full((4, hi.size), np.nan)
    figures = Elements(flags, error, uncertainty, absolute, certain, distance)
    with np.errstate(all="ignore"):  # a signalling NaN is data here
        g = got.astype(np.float64)
    special = ~np.isfinite(hi)
    unknown = ~special & np.isinf(radius)
    stray = ~(special | unknown) & np.isnan(g)
    zero = ~(special | stray) & (hi == 0.0) & (radius == 0.0)
    ordinary = ~(special | unknown | stray | zero)
    with np.errstate(all="ignore"):
        figures.put(special, _against_special(g[special], hi[special]))
        figures.put(unknown, flag.UNCERTIFIED | flag.UNDECIDED, np.nan, np.inf)
        figures.put(stray, flag.STRAY_NAN)
        figures.put(zero, *_against_zero(g[zero], hi[zero], format[2]))
        numbers = [part[ordinary] for part in (g, hi, lo, radius, scale)]
        figures.put(ordinary, *_against_number(numbers, format))
    return figures


def _against_special(g: Array, hi: Array) -> Array:
    matches = (g == hi) | (np.isnan(g) & np.isnan(hi))
    return flag.EXPECTED_SPECIAL | np.where(matches, _RIGHT, flag.SPECIAL_MISMATCH)


def _against_zero(g: Array, hi: Array, emax: int) -> tuple[Array, ...]:
    right = g == 0.0
    sign = np.where(np.signbit(g) != np.signbit(hi), flag.SIGNED_ZERO, 0)
    wrong = np.where(np.isinf(g), flag.NONZERO_AT_ZERO | flag.OVERFLOW, flag.NONZERO_AT_ZERO)
    flags = flag.EXACT_ZERO | np.where(right, flag.COMPARED | _RIGHT | sign, wrong)
    figure = np.where(right, 0.0, np.nan)
    absolute = np.where(np.isinf(g), np.ldexp(2.0, emax), np.abs(g))
    return flags, figure, figure, absolute, absolute


def _against_number(parts: Sequence[Array], format: Format) -> tuple[Array, ...]:
    g, hi, lo, r, s = parts
    p, emin, emax = format
    q = np.maximum(np.where(hi != 0.0, exponents(hi, lo) + s, emin), emin) - p + 1
    t, tail, radius = (np.ldexp(part, s - q) for part in (hi, lo, r))
    nearest = nearest_units(t, lo)
    infinite = np.abs(nearest) >= np.ldexp(2.0, emax - q)
    rounded = np.where(infinite, np.copysign(np.inf, hi), np.ldexp(nearest, q))
    flags = _rounding_flags(g, hi, lo, r, s, format, t, tail, radius, nearest, rounded)
    expected = infinite & (flags & flag.CORRECT != 0)

    unit = np.where(np.isinf(g), np.ldexp(np.copysign(2.0, g), emax - q), np.ldexp(g, -q))
    high, low = two_sum.py_func(unit, -t)
    error = np.where(np.isinf(unit), unit, high + (low - tail))
    size, floor = np.abs(error), emin - p + 1 - q
    nonzero = np.where(lo == 0.0, (hi != 0.0) & (np.abs(hi) >= r), np.abs(hi) - np.abs(lo) > r)
    changed = nonzero & (g != 0.0) & ((g > 0.0) != (hi > 0.0))
    flags |= np.where(changed, flag.SIGN_CHANGE, 0)
    shape = _shape_flags(g, unit, error, radius, nearest, infinite, p, floor)
    flags = np.where(expected, flags | flag.EXPECTED_SPECIAL, flags | shape)
    uncertainty = _uncertainty(size, t, tail, radius, p, floor)
    compared = ~expected & (uncertainty != np.inf)
    flags = np.where(compared, flags | flag.COMPARED, flags)
    distance = np.zeros(g.size, np.uint64)
    wrong = np.flatnonzero(compared & (flags & flag.CORRECT == 0))
    distance[wrong] = _distance(g[wrong], rounded[wrong], format)
    absolute = np.where(expected, 0.0, np.ldexp(size, q))
    certain = np.where(expected, 0.0, np.ldexp(np.maximum(size - radius, 0.0) * SLACK, q))
    beyond = np.isinf(error) & ~np.isinf(g)  # z is negligible compared with g
    absolute = np.where(beyond, np.abs(g), absolute)
    certain = np.where(beyond, np.abs(g) * SLACK, certain)
    error = np.where(compared, error, np.nan)
    return flags, error, np.where(expected, np.nan, uncertainty), absolute, certain, distance


def _rounding_flags(
    g: Array, hi: Array, lo: Array, r: Array, s: Array, format: Format,
    t: Array, tail: Array, radius: Array, nearest: Array, rounded: Array,
) -> Array:  # fmt: skip
    p = format[0]
    size = np.abs(nearest)
    reach = np.where((size == 2.0 ** (p - 1)) | (size == 2.0**p), 0.25, 0.5)
    clear = (nearest != 0.0) & (np.abs((t - nearest) + tail) + radius < reach * SLACK)
    other_zero = (nearest == 0.0) & (np.signbit(g) != np.signbit(hi))
    right = np.where(other_zero, flag.SIGNED_ZERO, _RIGHT)
    flags = np.where(rounded == g, right, 0)
    open_ = np.flatnonzero(~clear & (r != 0.0))
    lower, upper = rounded_ends(hi[open_], lo[open_], r[open_], s[open_], format)
    inside = np.where((lower <= g[open_]) & (g[open_] <= upper), flag.UNDECIDED, 0)
    flags[open_] = np.where(same_float(lower, upper), flags[open_], inside)
    return flags


def _shape_flags(
    g: Array, unit: Array, error: Array, radius: Array, nearest: Array, infinite: Array, p: int,
    floor: Array,
) -> Array:  # fmt: skip
    flags = np.where(infinite, flag.EXPECTED_SPECIAL, np.where(np.isinf(g), flag.OVERFLOW, 0))
    subnormal = (np.abs(nearest) > 0.0) & (np.abs(nearest) < 2.0 ** (p - 1))
    flags |= np.where((g == 0.0) & (floor == 0) & subnormal, flag.FLUSHED, 0)
    mantissa, power = np.frexp(unit)
    usual = (g != 0.0) & ~np.isinf(unit)
    exponent = np.where(usual, np.maximum(power.astype(np.int64) - p, floor), floor)
    halved = usual & (np.abs(mantissa) == 0.5) & (power - p > floor)
    spacing = np.ldexp(np.where(halved & ((error > 0.0) == (unit > 0.0)), 0.5, 1.0), exponent)
    reach = np.abs(error) + radius
    return flags | np.where((reach < 0.5) | (reach < spacing), flag.FAITHFUL, 0)


def _uncertainty(size: Array, t: Array, tail: Array, radius: Array, p: int, floor: Array) -> Array:
    magnitude, spread = np.abs(t), np.abs(tail) + radius
    one_ulp = magnitude + spread < 2.0**p * SLACK
    one_ulp &= (floor == 0) | (magnitude - spread > 2.0 ** (p - 1))
    uncertainty = radius.copy()
    several = np.flatnonzero(~one_ulp & (radius != 0.0))
    parts = [part[several] for part in (size, t, tail, radius, floor)]
    uncertainty[several] = _across_ulps(parts, p)
    return uncertainty


def _across_ulps(parts: Sequence[Array], p: int) -> Array:
    size, t, tail, radius, floor = parts
    magnitude, signed = np.abs(t), np.where(t > 0.0, tail, -tail)
    below, above = np.nextafter(signed - radius, -np.inf), np.nextafter(signed + radius, np.inf)
    inner = np.where(below >= 0.0, magnitude, np.nextafter(magnitude + below, -np.inf))
    outer = np.nextafter(magnitude + above, np.inf)
    outer = np.where(above < 0.0, np.minimum(outer, np.nextafter(magnitude, 0.0)), outer)
    big, small = (
        np.maximum(np.frexp(end)[1].astype(np.int64) - p, floor) for end in (outer, inner)
    )
    narrow, wide = np.ldexp(1.0, -small), np.ldexp(1.0, -big)
    lost = np.where(big > floor, np.inf, radius)  # zero is inside
    return np.where(inner <= 0.0, lost, radius * narrow + size * (narrow - wide))


def _distance(a: Array, b: Array, format: Format) -> Array:
    first, second = _ordinals(a, format), _ordinals(b, format)
    steps = np.abs(first - second).astype(np.uint64)
    return np.where(
        (a < 0.0) == (b < 0.0), steps, first.astype(np.uint64) + second.astype(np.uint64)
    )


def _ordinals(x: Array, format: Format) -> Array:
    """`elements.ordinal`, with infinity next to the largest float."""
    p, emin, emax = format
    exponent = np.maximum(np.frexp(x)[1].astype(np.int64) - 1, emin)
    places = (exponent - emin) * 2 ** (p - 1) + np.ldexp(np.abs(x), p - 1 - exponent).astype(
        np.int64
    )
    top = (emax + 1 - emin) * 2 ** (p - 1) + 2 ** (p - 1)
    return np.where(x == 0.0, 0, np.where(np.isinf(x), top, places))
