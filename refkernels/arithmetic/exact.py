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

_KEPT_BITS = 300  # of a ball's midpoint: hi and lo take 106 of them, the rest sharpens the radius


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
    where a double-double holds them, and a radius below 2^-105 of the value elsewhere."""
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
        size = abs(value.numerator).bit_length() - value.denominator.bit_length()
        exponent = min(size - _KEPT_BITS, 0)
        mid, rest = divmod(value.numerator << -exponent, value.denominator)
        mids.append(mid)
        radii.append(1 if rest else 0)
        exponents.append(exponent)
    return from_integer_balls(mids, radii, exponents, shape)


def _parts(mid: int, radius: int, exponent: int) -> tuple[float, float, float, int]:
    """(hi, lo, radius, scale) of one ball."""
    excess = max(mid.bit_length(), radius.bit_length()) - _KEPT_BITS
    if excess > 0:
        dropped = (mid & ((1 << excess) - 1)) != 0
        mid = (mid >> excess) | dropped  # to odd: what was dropped still breaks ties
        radius = (radius >> excess) + (2 if dropped or radius else 0)
        exponent += excess
    hi = float(mid)
    lo = float(mid - int(hi))
    if hi + lo != hi:  # lo was rounded up to a tie that hi does not win
        lo = math.nextafter(lo, 0.0)
    spread = _float_up(radius + abs(mid - int(hi) - int(lo)))
    size = max(mid.bit_length(), radius.bit_length()) + exponent
    if hi == 0.0 and spread == 0.0:
        return 0.0, 0.0, 0.0, 0
    if not -900 < size < 1000:
        return hi, lo, spread, exponent
    low = math.ldexp(lo, exponent)
    lost = math.ldexp(low, -exponent) != lo
    wide = math.ldexp(spread, exponent)
    if lost or math.ldexp(wide, -exponent) != spread:
        wide = math.nextafter(wide + (2.0**-1074 if lost else 0.0), math.inf)
    return math.ldexp(hi, exponent), low, wide, 0


def _float_up(value: int) -> float:
    """The smallest float64 that is at least the integer."""
    nearest = float(value)
    return nearest if int(nearest) >= value else math.nextafter(nearest, math.inf)


def to_fraction(hi: Any, lo: Any = 0.0, scale: Any = 0) -> Fraction:
    """(hi + lo) * 2^scale as an exact rational."""
    return (Fraction(float(hi)) + Fraction(float(lo))) * Fraction(2) ** int(scale)
