"""One element against its enclosure: flags, ULP error with uncertainty, absolute error, distance.

The unit is ulp(z) = 2^q, in which the exact value is t + tail ± r with |t| <= 2^p. No intermediate
overflows, and the target rounds z to an integer next to t. `got - z` is two_sum(g, -t) less tail:
only the last operation rounds (relative error about 2^-53).
"""

import math

import numpy as np

from refkernels.arithmetic.bits import SIGNIFICAND, bits_of, float_of
from refkernels.arithmetic.decisions import is_beside, rounded_ends
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.jit import inner, njit
from refkernels.metrology import special_values as flag

SLACK = 1.0 - 2.0**-50  # covers the roundings of an absolute error before it is called certain
_NONE = np.uint64(0)


@inner
def floor_log2(x):
    """floor(log2 |x|) of a finite nonzero float64: its exponent field, except for subnormals."""
    field = (bits_of(x) >> 52) & 0x7FF
    return field - 1023 if field != 0 else np.int64(math.frexp(x)[1] - 1)


@inner
def _exponent_of_pair(hi, lo):
    """`formats.exponent_of` by bits: there is no lo beside a subnormal hi."""
    below = bits_of(hi) & SIGNIFICAND == 0 and lo != 0.0 and (lo > 0.0) != (hi > 0.0)
    return floor_log2(hi) - below


@inner
def times_power(x, k):
    """x * 2^k, rounded once where it underflows."""
    if -1022 <= k <= 1023:
        return x * float_of(np.int64(k + 1023) << 52)
    return math.ldexp(x, k)


@inner
def ordinal(x, p, emin):
    """The rank of |x| among the format's floats: 0 for 0, 1 for the smallest subnormal, -1 for
    infinity."""
    if x == 0.0:
        return 0
    if math.isinf(x):
        return -1
    exponent = max(floor_log2(x), emin)
    significand = np.int64(times_power(abs(x), p - 1 - exponent))
    return np.int64(exponent - emin) * (np.int64(1) << np.int64(p - 1)) + significand


@inner
def distance_between(a, b, p, emin, emax):
    """How many steps of the format lead from a to b, as uint64 (float64 needs all 64 bits)."""
    top = np.int64(emax + 1 - emin) * (np.int64(1) << np.int64(p - 1)) + (
        np.int64(1) << np.int64(p - 1)
    )
    first, second = ordinal(a, p, emin), ordinal(b, p, emin)
    first = top if first < 0 else first
    second = top if second < 0 else second
    if (a < 0.0) == (b < 0.0):
        return np.uint64(abs(first - second))
    return np.uint64(first) + np.uint64(second)


@njit
def compare(g, hi, lo, r, s, p, emin, emax):
    """(flags, error, uncertainty, absolute, certain, distance) of g against (hi + lo ± r) 2^s.

    error and uncertainty are in ulp(z), NaN where undefined; absolute = |g - z|; certain is the
    part of it that the radius cannot explain; distance counts floats from the rounding of z.
    """
    if not math.isfinite(hi):
        return _against_special(g, hi)
    if math.isinf(r):
        flags = flag.UNCERTIFIED | flag.UNDECIDED
        return flags, math.nan, math.inf, math.nan, math.nan, _NONE
    if math.isnan(g):
        return flag.STRAY_NAN, math.nan, math.nan, math.nan, math.nan, _NONE
    if hi == 0.0 and r == 0.0:
        return _against_zero(g, hi, emax)
    q = max(_exponent_of_pair(hi, lo) + s if hi != 0.0 else emin, emin) - p + 1
    t, tail, radius = times_power(hi, s - q), times_power(lo, s - q), times_power(r, s - q)
    nearest = _round_units(t, lo)
    infinite = abs(nearest) >= times_power(2.0, emax - q)
    flags = _rounding_flags(g, hi, lo, r, s, p, emin, emax, t, tail, radius, nearest, infinite, q)
    if infinite and flags & flag.CORRECT != 0:
        return flags | flag.EXPECTED_SPECIAL, math.nan, math.nan, 0.0, 0.0, _NONE
    unit = times_power(math.copysign(2.0, g), emax - q) if math.isinf(g) else times_power(g, -q)
    error = _difference(unit, t, tail)
    if g != 0.0 and _nonzero(hi, lo, r) and (g > 0.0) != (hi > 0.0):
        flags |= flag.SIGN_CHANGE
    flags |= _shape_flags(g, unit, error, radius, nearest, infinite, p, emin - p + 1 - q)
    distance = _NONE
    if flags & flag.CORRECT == 0:
        rounded = math.copysign(math.inf, hi) if infinite else times_power(nearest, q)
        distance = distance_between(g, rounded, p, emin, emax)
    absolute = times_power(abs(error), q)
    certain = times_power(max(abs(error) - radius, 0.0) * SLACK, q)
    if math.isinf(error) and not math.isinf(g):  # z is negligible compared with g
        absolute, certain = abs(g), abs(g) * SLACK
    uncertainty = _uncertainty(error, t, tail, radius, p, emin - p + 1 - q)
    if uncertainty == math.inf:
        return flags, math.nan, uncertainty, absolute, certain, _NONE
    return flags | flag.COMPARED, error, uncertainty, absolute, certain, distance


@inner
def _against_special(g, hi):
    matches = g == hi or (math.isnan(g) and math.isnan(hi))
    right = flag.CORRECT | flag.FAITHFUL
    flags = flag.EXPECTED_SPECIAL | (right if matches else flag.SPECIAL_MISMATCH)
    return flags, math.nan, math.nan, math.nan, math.nan, _NONE


@inner
def _against_zero(g, hi, emax):
    if g == 0.0:
        flags = flag.COMPARED | flag.CORRECT | flag.FAITHFUL | flag.EXACT_ZERO
        if math.copysign(1.0, g) != math.copysign(1.0, hi):
            flags |= flag.SIGNED_ZERO
        return flags, 0.0, 0.0, 0.0, 0.0, _NONE
    flags = flag.EXACT_ZERO | flag.NONZERO_AT_ZERO
    absolute = abs(g)
    if math.isinf(g):
        flags |= flag.OVERFLOW
        absolute = times_power(2.0, emax)
    return flags, math.nan, math.nan, absolute, absolute, _NONE


@inner
def _round_units(t, lo):
    """The integer nearest to t + (a little of lo's sign), ties to even: see formats.round_pair."""
    nearest = np.rint(t)
    fraction = t - nearest
    if fraction == 0.5 and lo > 0.0:
        nearest += 1.0
    elif fraction == -0.5 and lo < 0.0:
        nearest -= 1.0
    return nearest


@inner
def _difference(unit, t, tail):
    if math.isinf(unit):
        return unit
    high, low = two_sum(unit, -t)
    return high + (low - tail)


@inner
def _rounding_flags(g, hi, lo, r, s, p, emin, emax, t, tail, radius, nearest, infinite, q):
    """CORRECT, UNDECIDED or neither; SIGNED_ZERO where only the sign of a rounded zero differs."""
    certified = r == 0.0 or is_beside(lo, r, p)
    if not certified and nearest == 0.0:
        certified = _nonzero(hi, lo, r) and abs(t) + abs(tail) + radius < 0.5 * SLACK
    elif not certified:
        # Half a unit to the next boundary; a quarter below a power of two, where floats are denser,
        # but not below 2^p, where t is.
        reach = 0.25 if abs(nearest) == times_power(1.0, p - 1) else 0.5
        certified = abs((t - nearest) + tail) + radius < reach * SLACK
    if not certified:
        lower, upper = rounded_ends(hi, lo, r, s, p, emin, emax)
        if not (lower == upper and math.copysign(1.0, lower) == math.copysign(1.0, upper)):
            return flag.UNDECIDED if lower <= g <= upper else 0
    same_sign = math.copysign(1.0, g) == math.copysign(1.0, hi)
    if infinite:
        return flag.CORRECT | flag.FAITHFUL if math.isinf(g) and same_sign else 0
    if math.isinf(g) or times_power(nearest, q) != g:
        return 0
    if nearest == 0.0 and not same_sign:
        return flag.SIGNED_ZERO
    return flag.CORRECT | flag.FAITHFUL


@inner
def _nonzero(hi, lo, r):
    """Whether all numbers inside have hi's sign. The interval is open: zero may be its end."""
    return bool(hi != 0.0 and abs(hi) >= r) if lo == 0.0 else abs(hi) - abs(lo) > r


@inner
def _shape_flags(g, unit, error, radius, nearest, infinite, p, floor):
    """Overflow, flushed subnormal, faithful; `floor` is the log2 of the subnormals' spacing in
    units of ulp(z), 0 where z itself is among them."""
    flags = 0
    if infinite:
        flags |= flag.EXPECTED_SPECIAL
    elif math.isinf(g):
        flags |= flag.OVERFLOW
    if g == 0.0 and floor == 0 and 0.0 < abs(nearest) < times_power(1.0, p - 1):
        flags |= flag.FLUSHED
    if abs(error) + radius < 0.5:  # half an ulp(z) is the least spacing next to z
        return flags | flag.FAITHFUL
    exponent = floor
    towards_zero = False
    if g != 0.0 and not math.isinf(unit):
        power = floor_log2(unit)
        exponent = max(power - p + 1, floor)
        towards_zero = (
            abs(unit) == times_power(1.0, power)
            and power - p >= floor
            and (error > 0.0) == (unit > 0.0)
        )
    spacing = times_power(0.5 if towards_zero else 1.0, exponent)
    if abs(error) + radius < spacing:
        flags |= flag.FAITHFUL
    return flags


@inner
def _uncertainty(error, t, tail, radius, p, floor):
    """sup |e(z') - e(z)| over the enclosure, e(z) = (got - z) / ulp(z).

    radius, where every z' has the ulp of z. Otherwise, with ulp(z') in [small, big],
    |e' - e| = |(z - z') / ulp' + (got - z)(1/ulp' - 1/ulp)|
             <= r/small + |got - z| (1/small - 1/big).
    Infinite where the interval reaches zero through more than one ulp: no ulp is defined there.
    """
    if radius == 0.0:
        return 0.0
    spread = abs(tail) + radius
    inner, outer = abs(t) - spread, abs(t) + spread
    top = times_power(1.0, p)
    if outer < top * SLACK and (floor == 0 or inner > 0.5 * top):
        return radius
    signed = tail if t > 0.0 else -tail
    below, above = np.nextafter(signed - radius, -math.inf), np.nextafter(signed + radius, math.inf)
    inner = abs(t) if below >= 0.0 else np.nextafter(abs(t) + below, -math.inf)
    outer = np.nextafter(abs(t) + above, math.inf)
    if above < 0.0:
        outer = min(outer, np.nextafter(abs(t), 0.0))
    big = max(floor_log2(outer) + 1 - p, floor)
    if inner <= 0.0:
        return math.inf if big > floor else radius
    small = max(floor_log2(inner) + 1 - p, floor)
    narrow, wide = times_power(1.0, -small), times_power(1.0, -big)
    return radius * narrow + abs(error) * (narrow - wide)
