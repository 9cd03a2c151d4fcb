"""Exact arithmetic on Python integers: the last tier of every ladder, slow and never wrong.

A float64 is an integer times a power of two, so sums and products of floats are exact integers
with a common exponent. Results are balls (mid ± radius) * 2^exponent with integer parts.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import PARTS, SCALE_LIMIT, Enclosure, trusted

Parts: TypeAlias = tuple[float, float, float, int]  # hi, lo, radius, scale of one element

_KEPT_BITS = 300  # bits of an integer that become a float at once: float64 overflows at 1024
_APART = 5000  # exponents of intervals that are not compared bit by bit
_BEYOND = 2000  # exponents above it are beyond every format's
_SCALED_SIZE = 1000  # log2 of a scaled ball, which keeps its low part far from underflow


def to_integers(values: npt.NDArray[np.float64]) -> tuple[list[int], int]:
    """Integers m_i and one exponent e with values_i = m_i * 2^e exactly; finite values, flat."""
    mantissas, exponents = np.frexp(np.ravel(values))
    mantissa_integers = np.ldexp(mantissas, 53).astype(np.int64)
    nonzero = mantissa_integers != 0
    if not nonzero.any():
        return [0] * mantissa_integers.size, 0
    powers = exponents.astype(np.int64) - 53
    lowest = int(powers[nonzero].min())
    shifts = np.where(nonzero, powers - lowest, 0)
    return [
        m << s for m, s in zip(mantissa_integers.tolist(), shifts.tolist(), strict=True)
    ], lowest


def from_integer_balls(
    mids: Sequence[int],
    radii: Sequence[int],
    exponents: Sequence[int],
    shape: tuple[int, ...],
) -> Enclosure:
    """The Enclosure of values strictly inside (mid_i ± radius_i) * 2^exponent_i, or mid_i itself
    where radius_i = 0. Exact values get radius 0 where a double-double holds them, elsewhere a
    radius below 2^-105 of the value. hi is the correctly rounded midpoint, lo has the sign of the
    remainder, and a ball on one side of hi becomes an interval on that side.

    Beyond 2^±SCALE_LIMIT: the interval from zero to that power, or an infinite radius.
    """
    return _assemble([_parts(*ball) for ball in zip(mids, radii, exponents, strict=True)], shape)


def _assemble(elements: Sequence[Parts], shape: tuple[int, ...]) -> Enclosure:
    columns = np.array([element[:3] for element in elements], dtype=np.float64).reshape(-1, 3)
    hi, lo, radius = (column.reshape(shape) for column in columns.T)
    scale = np.array([element[3] for element in elements], dtype=np.int64)
    return trusted(hi, lo, radius, scale.reshape(shape))


def intersection(first: Enclosure, second: Enclosure) -> Enclosure:
    """The intersection of two flat Enclosures of the same values.

    Raises ArithmeticError where two intervals have no number in common: one of them is wrong. An
    exact value is returned unchanged.
    """
    columns = (
        zip(*(getattr(side, name).tolist() for name in PARTS), strict=True)
        for side in (first, second)
    )
    return _assemble([_meet(a, b) for a, b in zip(*columns, strict=True)], first.shape)


def _meet(first: Parts, second: Parts) -> Parts:
    if first[2] == second[2] == math.inf:
        return second if math.isfinite(first[0]) else first  # an infinite hi gives the sign
    if first[2] == 0.0 or second[2] == math.inf:
        return first
    if second[2] == 0.0 or first[2] == math.inf:
        return second
    (low, high, exponent), (low2, high2, exponent2) = _ends(*first), _ends(*second)
    if abs(exponent - exponent2) > _APART:  # not worth integers of that many bits
        return first if exponent < exponent2 else second
    common = min(exponent, exponent2)
    low, high = low << (exponent - common), high << (exponent - common)
    low2, high2 = low2 << (exponent2 - common), high2 << (exponent2 - common)
    if low2 <= low and high <= high2:
        return first
    if low <= low2 and high2 <= high:
        return second
    low, high = max(low, low2), min(high, high2)
    if low >= high:
        raise ArithmeticError(f"Two certified answers contradict each other: {first} and {second}.")
    return _parts(low + high, high - low, common - 1)


def _ends(hi: float, lo: float, radius: float, scale: int) -> tuple[int, int, int]:
    """(low, high, e): the interval's ends are low 2^e and high 2^e exactly."""
    scaled = [math.frexp(part) for part in (hi, lo, radius)]
    exponent = min((power for mantissa, power in scaled if mantissa), default=0)
    mid, tail, wide = (
        int(math.ldexp(mantissa, 53)) << (power - exponent) if mantissa else 0
        for mantissa, power in scaled
    )
    return mid + tail - wide, mid + tail + wide, exponent - 53 + scale


def from_fractions(values: Iterable[Fraction], shape: tuple[int, ...]) -> Enclosure:
    """The tightest Enclosure of exact rationals."""
    mids, radii, exponents = [], [], []
    for value in values:
        top, bottom = value.numerator, value.denominator
        if bottom & (bottom - 1) == 0:  # a binary fraction needs no rounding
            mid, remainder, exponent = top, 0, 1 - bottom.bit_length()
        else:
            exponent = min(abs(top).bit_length() - bottom.bit_length() - _KEPT_BITS, 0)
            mid, remainder = divmod(top << -exponent, bottom)
        mids.append(mid | (remainder != 0))  # to odd: the remainder still breaks ties
        radii.append(1 if remainder else 0)
        exponents.append(exponent)
    return from_integer_balls(mids, radii, exponents, shape)


def _parts(mid: int, radius: int, exponent: int) -> Parts:
    """One ball. The scale is 0 unless a part would leave float64's range."""
    if not mid and not radius:
        return 0.0, 0.0, 0.0, 0
    size = max(mid.bit_length(), radius.bit_length()) + exponent
    if abs(size) > SCALE_LIMIT:
        return _out_of_range(mid, radius, exponent)
    mid, radius, exponent = mid << 64, radius << 64, exponent - 64  # for lo's neighbours
    hi, hi_power = _nearest(mid)
    remainder = mid - (int(hi) << hi_power)
    lo, lo_power, spread = _remainder(hi, hi_power, remainder, radius)
    far = size - _SCALED_SIZE
    for scale in (0, far) if -900 < size < 1000 else (far,):
        power = exponent - scale
        high, high_lost = _scaled(hi, hi_power + power)
        low, low_lost = _scaled(lo, lo_power + power)
        if not (high_lost or low_lost):
            break
    wide = _scaled_up(spread, power, high_lost + low_lost)
    if wide > abs(low) and abs(remainder) >= max(radius, 1) and not high_lost:
        # The whole ball lies on one side of hi: from hi to its far end.
        bound = _scaled_up(abs(remainder) + radius + (radius == 0), power - 1, 0)
        side = bound if remainder > 0 else -bound
        if high + side == high:
            return high, side, bound, scale
    return high, low, wide, scale


def _remainder(hi: float, hi_power: int, remainder: int, radius: int) -> tuple[float, int, int]:
    """(lo, power, spread): remainder ± radius lies in lo 2^power ± spread, however far it is below
    hi.

    A remainder just short of the midpoint between hi and its neighbour gets a lo on the same side
    of the midpoint, with an interval that ends there."""
    lo, power = _nearest(remainder)
    middle = int(lo) << power
    neighbour = math.nextafter(hi, math.copysign(math.inf, lo))
    if middle != remainder and 2.0 * math.ldexp(lo, power - hi_power) == neighbour - hi:
        lo = math.nextafter(lo, 0.0)
        if abs(remainder) + radius <= abs(middle):
            return lo, power, abs(middle - (int(lo) << power))
    left = abs(remainder - (int(lo) << power))
    return lo, power, radius + left + (left != 0 and radius == 0)  # the value is never at an end


def _out_of_range(mid: int, radius: int, exponent: int) -> Parts:
    """A ball beyond 2^±SCALE_LIMIT, of which at most the sign is kept."""
    sign = (mid >= radius) - (-mid >= radius)
    if exponent + max(mid.bit_length(), radius.bit_length()) < 0:
        return 0.5 * sign, 0.0, 0.5 if sign else 1.0, -SCALE_LIMIT
    certain = (abs(mid) - radius).bit_length() + exponent > _BEYOND and sign != 0
    return sign * math.inf if certain else 0.0, 0.0, math.inf, 0


def _scaled(value: float, power: int) -> tuple[float, bool]:
    """value 2^power, and whether underflow changed it, by at most 2^-1075."""
    scaled = math.ldexp(value, power)
    return scaled, math.ldexp(scaled, -power) != value


def _scaled_up(value: int, power: int, lost: int) -> float:
    """At least value 2^power + lost 2^-1075, too large by 2^-50 of itself or a few 2^-1074."""
    rounded_up, shift = _float_up(value)
    scaled = math.ldexp(rounded_up, power + shift)
    if lost or math.ldexp(scaled, -power - shift) != rounded_up:
        scaled = math.nextafter(scaled, math.inf) + lost * 2.0**-1074
    return scaled


def _nearest(value: int) -> tuple[float, int]:
    """(f, k) with f 2^k the correctly rounded value, f an integer of at most _KEPT_BITS bits."""
    excess = max(value.bit_length() - _KEPT_BITS, 0)
    dropped = (value & ((1 << excess) - 1)) != 0
    return float((value >> excess) | dropped), excess  # to odd: the dropped bits still break ties


def _float_up(value: int) -> tuple[float, int]:
    """(f, k) with f 2^k >= value >= 0, by less than 2^-51 of it."""
    excess = max(value.bit_length() - _KEPT_BITS, 0)
    rounded_up = -(-value >> excess)
    nearest = float(rounded_up)
    return nearest if int(nearest) >= rounded_up else math.nextafter(nearest, math.inf), excess
