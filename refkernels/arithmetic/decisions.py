"""Whether an interval (hi + lo ± radius) * 2^scale decides a rounding, and how many ulp it is wide.

The interval is open: neither end is in it, so an end that is a midpoint, or zero, decides too.
A vectorised test of one or two float64 operations on either side decides nearly every element;
exact arithmetic on pairs decides the few in doubt. The quick test never contradicts the exact one,
so the answers are those of the exact test alone.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.bits import (
    EXPONENT,
    LEAST,
    OUTWARD,
    ROOM,
    SIGNIFICAND,
    bits_of,
    float_of,
)
from refkernels.arithmetic.blocks import SPAN
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.formats import exponent_of, round_pair
from refkernels.arithmetic.jit import inner, njit


@inner
def step_of(part: Any, whole: Any) -> int:
    """1 where part has an element for each of whole's, 0 where its first SPAN elements serve for
    all."""
    return 1 if part.size == whole.size else 0


@inner
def span_of(hi: Any, lo: Any, radius: Any, scale: Any, i: int, n: int) -> Any:
    """The elements i ... i + n - 1 of an interval's parts."""
    j, k, m = i * step_of(lo, hi), i * step_of(radius, hi), i * step_of(scale, hi)
    return hi[i : i + n], lo[j : j + n], radius[k : k + n], scale[m : m + n]


@njit(nogil=True)
def relative_radii(first: int, last: int, hi: Any, factor: float, radius: Any) -> None:
    """radius = factor |hi|, 0 where hi is not finite."""
    for i in range(first, last):
        size = abs(hi[i])
        radius[i] = size * factor if size < np.inf else 0.0


@njit(nogil=True)
def undecided_roundings(
    first: int, last: int, hi: Any, lo: Any, radius: Any, scale: Any, format: Any, undecided: Any
) -> None:
    """undecided[first:last] = the elements whose interval rounds to more than one float."""
    p, emin, emax = format
    for i in range(first, last, SPAN):
        n = min(SPAN, last - i)
        parts = span_of(hi, lo, radius, scale, i, n)
        marks = undecided[i : i + n]
        if _mark_doubtful(*parts, p, emin, emax, marks) > 0:
            _settle(*parts, p, emin, emax, marks)


@njit(nogil=True)
def round_elements(
    first: int,
    last: int,
    hi: Any,
    lo: Any,
    radius: Any,
    scale: Any,
    format: Any,
    values: Any,
    certified: Any,
) -> None:
    """values[first:last] = (hi + lo) * 2^scale rounded to the format; certified where both ends
    of the interval round to that."""
    p, emin, emax = format
    for i in range(first, last, SPAN):
        n = min(SPAN, last - i)
        parts = span_of(hi, lo, radius, scale, i, n)
        marks = certified[i : i + n]
        doubtful = _mark_doubtful(*parts, p, emin, emax, marks)
        _round_clear(parts[0], p, values[i : i + n])
        for e in range(n if doubtful else 0):
            if marks[e]:
                a, b, r, s = parts[0][e], parts[1][e], parts[2][e], parts[3][e]
                values[i + e] = round_pair(a, b, s, p, emin, emax)
                marks[e] = is_undecided(a, b, r, s, p, emin, emax)
        for e in range(n):
            marks[e] = not marks[e]


@inner
def _mark_doubtful(
    hi: Any, lo: Any, radius: Any, scale: Any, p: int, emin: int, emax: int, marks: Any
) -> int:
    """Marks the elements that the quick test leaves open, and returns their number.

    p <= 24: adding half a unit of the format's last place to the bits of a float64 and cutting
    them off there rounds it to nearest. Both ends, taken outwards beyond their errors and so
    strictly inside, must give the same: then no midpoint is between them. The exponents stay
    clear of subnormals and of overflow.
    p = 53: h itself is the float, and the interval must end before the midpoints on either side:
    half an ulp, a quarter of one below a power of two.
    """
    least, most = 2.0 ** max(emin + 1, LEAST), 2.0**emax
    doubtful = 0
    if p < 53:
        half, mask = np.int64(1) << (52 - p), ~((np.int64(1) << (53 - p)) - 1)
        for i in range(hi.size):
            h = abs(hi[i])
            reach = abs(lo[i]) + radius[i]
            low = bits_of(h - reach) + (half - OUTWARD)
            high = bits_of(h + reach) + (half + OUTWARD)
            clear = (h > least) & (h < most) & (scale[i] == 0) & (((low ^ high) & mask) == 0)
            marks[i] = not clear
            doubtful += not clear
        return doubtful
    for i in range(hi.size):
        h = abs(hi[i])
        bits = bits_of(h)
        gap = float_of(bits & EXPONENT) * (2.0**-54 if bits & SIGNIFICAND == 0 else 2.0**-53)
        reach = abs(lo[i]) + radius[i]
        clear = (h > least) & (h < most) & (scale[i] == 0) & (reach < gap * ROOM)
        marks[i] = not clear
        doubtful += not clear
    return doubtful


@inner
def _round_clear(hi: Any, p: int, values: Any) -> None:
    """hi rounded to p bits as if no midpoint were near. That is so where nothing is in doubt: then
    hi rounds as the whole interval does."""
    if p == 53:
        for i in range(hi.size):
            values[i] = hi[i]
        return
    half, mask = np.int64(1) << (52 - p), ~((np.int64(1) << (53 - p)) - 1)
    for i in range(hi.size):
        values[i] = float_of((bits_of(hi[i]) + half) & mask)


@inner
def _settle(
    hi: Any, lo: Any, radius: Any, scale: Any, p: int, emin: int, emax: int, marks: Any
) -> None:
    least, most = 2.0 ** max(emin + 1, LEAST), 2.0**emax
    for i in range(hi.size):
        if marks[i]:
            a, b, r, s = hi[i], lo[i], radius[i], scale[i]
            hopeless = _is_hopeless(a, b, r, s, p, least, most)
            marks[i] = hopeless or is_undecided(a, b, r, s, p, emin, emax)


@inner
def _is_hopeless(
    hi: float, lo: float, radius: float, scale: int, p: int, least: float, most: float
) -> bool:
    """Whether hi ± (radius - |lo|), taken inwards, certainly holds a midpoint; False in doubt.

    It would not pay in the vectorised loop, but it makes a hopeless element ten times cheaper, and
    a first tier may leave many of them.
    """
    h, inner = abs(hi), (radius - abs(lo)) * ROOM
    if scale != 0 or not (inner > 0.0 and h < most):
        return False
    low, high = h - inner, h + inner
    if not (low > least and high < most):
        return False
    if p == 53:  # beyond the next float but one on the far side, and below h on the near one
        return bool(inner > float_of(bits_of(h) & EXPONENT) * 2.0**-51)
    half = np.int64(1) << (52 - p)
    below, above = bits_of(low) + (half + OUTWARD), bits_of(high) + (half - OUTWARD - 1)
    return bool((below >> (53 - p)) < (above >> (53 - p)))


@inner
def is_undecided(
    hi: float, lo: float, radius: float, scale: int, p: int, emin: int, emax: int
) -> bool:
    """Whether the numbers inside round to different floats, in magnitude or in sign."""
    if radius == 0.0 or math.isinf(hi) or is_beside(lo, radius, p):
        return False
    lower, upper = rounded_ends(hi, lo, radius, scale, p, emin, emax)
    return not (lower == upper and math.copysign(1.0, lower) == math.copysign(1.0, upper))


@inner
def is_beside(lo: float, radius: float, p: int) -> bool:
    """Whether the interval lies between hi and a neighbour of it, |lo| being half the way at most:
    there is no rounding boundary then, because those of p < 53 are float64 numbers."""
    return p < 53 and abs(lo) >= radius


@inner
def rounded_ends(
    hi: float, lo: float, radius: float, scale: int, p: int, emin: int, emax: int
) -> tuple[float, float]:
    """The roundings of numbers just inside the ends, or, where an end is not a pair, just inside a
    pair beyond it; a zero has the sign of those numbers."""
    low, high = directed(hi, lo, -radius), directed(hi, lo, radius)
    low, high = _moved(low[0], low[1], 1.0), _moved(high[0], high[1], -1.0)
    lower = round_pair(low[0], low[1], scale, p, emin, emax)
    return lower, round_pair(high[0], high[1], scale, p, emin, emax)


@inner
def _moved(hi: float, lo: float, side: float) -> tuple[float, float]:
    """A pair that rounds as numbers just beside hi + lo do, on that side of it (±1).

    hi + lo can only be a boundary that decides otherwise where lo = 0 (it has 53 bits), or where it
    is the midpoint of hi and its neighbour."""
    if hi == 0.0:
        return math.copysign(0.0, side), 0.0
    if lo == 0.0:
        return hi, side * 2.0**-1074
    if (lo > 0.0) == (side > 0.0):
        neighbour = np.nextafter(hi, math.copysign(math.inf, lo))
        if 2.0 * lo == neighbour - hi:
            return neighbour, -lo
    return hi, lo


@inner
def directed(hi: float, lo: float, radius: float) -> tuple[float, float]:
    """A normalised pair at or beyond hi + lo + radius, on the side of radius's sign."""
    s, e = two_sum(lo, radius)
    if radius < 0.0 and e < 0.0:
        s = np.nextafter(s, -math.inf)
    elif radius > 0.0 and e > 0.0:
        s = np.nextafter(s, math.inf)
    return two_sum(hi, s)


@njit(nogil=True)
def uncertainties(
    first: int, last: int, hi: Any, lo: Any, radius: Any, scale: Any, format: Any, result: Any
) -> None:
    """result[first:last] = radius / ulp, with the smallest ulp that the interval touches."""
    p, emin, _ = format
    for i in range(first, last, SPAN):
        n = min(SPAN, last - i)
        parts = span_of(hi, lo, radius, scale, i, n)
        ratios = result[i : i + n]
        if _measure_clear(*parts, p, emin, ratios) > 0:
            for e in range(n):
                if ratios[e] < 0.0:
                    a, b, r, s = parts[0][e], parts[1][e], parts[2][e], parts[3][e]
                    ratios[e] = uncertainty_of(a, b, r, s, p, emin)


@njit(nogil=True)
def undecided_widths(
    first: int,
    last: int,
    hi: Any,
    lo: Any,
    radius: Any,
    scale: Any,
    format: Any,
    limit: float,
    undecided: Any,
) -> None:
    """undecided[first:last] = the elements whose radius is more than limit ulp."""
    p, emin, _ = format
    scratch, least = np.empty(SPAN), 2.0 ** max(emin + 1, LEAST)
    for i in range(first, last, SPAN):
        n = min(SPAN, last - i)
        parts = span_of(hi, lo, radius, scale, i, n)
        ratios, marks = scratch[:n], undecided[i : i + n]
        doubtful = _measure_clear(*parts, p, emin, ratios)
        for e in range(n):
            marks[e] = not ratios[e] <= limit
        for e in range(n if doubtful else 0):
            if ratios[e] < 0.0:
                a, b, r, s = parts[0][e], parts[1][e], parts[2][e], parts[3][e]
                marks[e] = not _uncertainty_or_more(a, b, r, s, p, emin, limit, least) <= limit


@inner
def _uncertainty_or_more(
    hi: float, lo: float, radius: float, scale: int, p: int, emin: int, limit: float, least: float
) -> float:
    """The uncertainty, or a lower bound on it, radius / ulp(hi), where that exceeds the limit
    already."""
    h = abs(hi)
    if scale == 0 and least < h < 2.0**1023:
        at_least = radius * float_of((np.int64(2046 + p - 1) << 52) - (bits_of(h) & EXPONENT))
        if at_least > limit:
            return at_least
    return uncertainty_of(hi, lo, radius, scale, p, emin)


@inner
def _measure_clear(
    hi: Any, lo: Any, radius: Any, scale: Any, p: int, emin: int, result: Any
) -> int:
    """radius / ulp of the elements whose interval stays in hi's binade towards zero, far from
    subnormals; -1 for the others. Returns how many others there are. hi + lo is never in a higher
    binade than hi = fl(hi + lo), so the smallest ulp touched is hi's."""
    least = 2.0 ** max(emin + 1, LEAST)
    doubtful = 0
    for i in range(hi.size):
        h = abs(hi[i])
        low = bits_of(h - (abs(lo[i]) + radius[i])) - OUTWARD
        power = bits_of(h) & EXPONENT
        clear = (h > least) & (h < 2.0**1023) & (scale[i] == 0) & ((low & ~SIGNIFICAND) == power)
        # 2^(p - 1 - e), whose exponent field is that of 1 twice, less that of 2^e.
        inverse = float_of((np.int64(2046 + p - 1) << 52) - power)
        result[i] = radius[i] * inverse if clear else -1.0
        doubtful += not clear
    return doubtful


@inner
def uncertainty_of(hi: float, lo: float, radius: float, scale: int, p: int, emin: int) -> float:
    """radius / ulp by the exact end of the interval towards zero; 0 for a value that has no ulp,
    because it is infinite or beyond every format."""
    if radius == 0.0 or math.isinf(hi):
        return 0.0
    toward_zero = -radius if hi > 0.0 else radius
    inner = directed(hi, lo, toward_zero)
    crosses = inner[0] == 0.0 or (inner[0] > 0.0) != (hi > 0.0)
    floor = emin if crosses else max(exponent_of(inner[0], inner[1]) + scale, emin)
    return math.ldexp(radius, scale - (floor - p + 1))
