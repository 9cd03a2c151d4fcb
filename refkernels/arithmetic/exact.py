"""Exact arithmetic on Python integers: the tier below all others, slow and never wrong.

A float64 is an integer times a power of two, so sums and products of floats are exact integers
with a common exponent. What comes back is a ball (mid ± radius) * 2^exponent with integer parts.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure

_KEPT_BITS = 300  # at a time, of an integer that becomes a float: float64 has no room for 1024
_SCALED_SIZE = 1000  # log2 of a scaled ball: leaves its low part the most room above underflow


def to_integers(values: npt.NDArray[np.float64]) -> tuple[list[int], int]:
    """Integers m_i and one exponent e with values_i = m_i * 2^e exactly; finite values, flat."""
    mantissas, exponents = np.frexp(np.ravel(values))
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    nonzero = whole != 0
    if not nonzero.any():
        return [0] * whole.size, 0
    powers = exponents.astype(np.int64) - 53
    lowest = int(powers[nonzero].min())
    shifts = np.where(nonzero, powers - lowest, 0)
    return [m << s for m, s in zip(whole.tolist(), shifts.tolist(), strict=True)], lowest


def from_integer_balls(
    mids: Sequence[int],
    radii: Sequence[int],
    exponents: Sequence[int],
    shape: tuple[int, ...],
) -> Enclosure:
    """The Enclosure of the balls (mid_i ± radius_i) * 2^exponent_i; exact ones get radius 0
    where a double-double holds them, and a radius below 2^-105 of the value elsewhere. hi is
    the correctly rounded midpoint, and lo's sign is that of what hi leaves."""
    parts = [_parts(m, r, e) for m, r, e in zip(mids, radii, exponents, strict=True)]
    columns = np.array([part[:3] for part in parts], dtype=np.float64).reshape(len(parts), 3)
    scale = np.array([part[3] for part in parts], dtype=np.int64).reshape(shape)
    return Enclosure(
        columns[:, 0].reshape(shape),
        columns[:, 1].reshape(shape),
        columns[:, 2].reshape(shape),
        scale,
    )


def from_fractions(values: Iterable[Fraction], shape: tuple[int, ...]) -> Enclosure:
    """The tightest Enclosure of exact rationals."""
    mids, radii, exponents = [], [], []
    for value in values:
        top, bottom = value.numerator, value.denominator
        if bottom & (bottom - 1) == 0:  # a binary fraction needs no rounding
            mid, rest, exponent = top, 0, 1 - bottom.bit_length()
        else:
            exponent = min(abs(top).bit_length() - bottom.bit_length() - _KEPT_BITS, 0)
            mid, rest = divmod(top << -exponent, bottom)
        mids.append(mid | (rest != 0))  # to odd: what is left over still breaks ties
        radii.append(1 if rest else 0)
        exponents.append(exponent)
    return from_integer_balls(mids, radii, exponents, shape)


def _parts(mid: int, radius: int, exponent: int) -> tuple[float, float, float, int]:
    """(hi, lo, radius, scale) of one ball. lo is taken from the exact remainder, however far below
    hi it lies: it tells a value 2^-1000 beside a midpoint from the midpoint. The scale is 0 unless
    a part would leave float64's range."""
    hi, hi_power = _nearest(mid)
    rest = mid - (int(hi) << hi_power)
    lo, lo_power = _nearest(rest)
    if hi + math.ldexp(lo, lo_power - hi_power) != hi:  # rounded up to a tie that hi does not win
        lo = math.nextafter(lo, 0.0)
    spread, power = _float_up(radius + abs(rest - (int(lo) << lo_power)))
    if hi == 0.0 and spread == 0.0:
        return 0.0, 0.0, 0.0, 0
    size = max(mid.bit_length(), radius.bit_length()) + exponent
    scale = 0 if -900 < size < 1000 else size - _SCALED_SIZE
    high, low, lost = _placed(hi, hi_power + exponent - scale, lo, lo_power + exponent - scale)
    if lost and scale == 0:
        scale = size - _SCALED_SIZE
        high, low, lost = _placed(hi, hi_power + exponent - scale, lo, lo_power + exponent - scale)
    power += exponent - scale
    wide = math.ldexp(spread, power)
    if lost or math.ldexp(wide, -power) != spread:
        wide = math.nextafter(wide + (2.0**-1073 if lost else 0.0), math.inf)
    return high, low, wide, scale


def _placed(hi: float, hi_power: int, lo: float, lo_power: int) -> tuple[float, float, bool]:
    """hi 2^hi_power, lo 2^lo_power, and whether underflow took something of them: less than
    2^-1073 in all. A lo that vanishes leaves its sign, which breaks ties."""
    high, low = math.ldexp(hi, hi_power), math.ldexp(lo, lo_power)
    if math.ldexp(high, -hi_power) != hi:
        return high, 0.0, True
    lost = math.ldexp(low, -lo_power) != lo
    if lo != 0.0 and low == 0.0 and abs(high) > 2.0**-1000:
        low = math.copysign(2.0**-1074, lo)
    return high, low, lost


def _nearest(value: int) -> tuple[float, int]:
    """(f, k) with f 2^k the correctly rounded value, f an integer of at most _KEPT_BITS bits."""
    excess = max(value.bit_length() - _KEPT_BITS, 0)
    dropped = (value & ((1 << excess) - 1)) != 0
    return float((value >> excess) | dropped), excess  # to odd: what was dropped still breaks ties


def _float_up(value: int) -> tuple[float, int]:
    """(f, k) with f 2^k >= value >= 0, by less than 2^-51 of it."""
    excess = max(value.bit_length() - _KEPT_BITS, 0)
    kept = -(-value >> excess)
    nearest = float(kept)
    return nearest if int(nearest) >= kept else math.nextafter(nearest, math.inf), excess


def to_fraction(hi: Any, lo: Any = 0.0, scale: Any = 0) -> Fraction:
    """(hi + lo) * 2^scale as an exact rational."""
    return (Fraction(float(hi)) + Fraction(float(lo))) * Fraction(2) ** int(scale)
