"""The plain elements of an array, nearly all of them: a block at a time, vectorised.

An element is plain where its figures need no case distinction. The exact value z and `got` are
normal numbers of one sign well inside the format's range; the enclosure decides the rounding of z
and stays in one binade; and got is that rounding, or lies in z's binade above its power of two. All
others go to `elements.compare`, which gives the same figures for a plain element.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.bits import EXPONENT, SIGNIFICAND, bits_of, float_of
from refkernels.arithmetic.decisions import OUTWARD
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.metrology.elements import SLACK

_LOWEST = -6  # errors below 2^-6 ulp share a bin
_HIGHEST = 57  # and so do those from 2^57 on
_SUB_BITS = 8  # bins to the octave: 2^8
_FIRST = 2  # bins before that of 2^-6: errors of 0, and errors between
_BASE = ((1023 + _LOWEST) << _SUB_BITS) - _FIRST
OPEN_BIN = ((_HIGHEST - _LOWEST) << _SUB_BITS) + _FIRST
"""The last bin, for errors of 2^57 and more."""
NO_BIN = OPEN_BIN + 1
"""The bin of elements without a ULP error."""

OTHER = 1 << 15
"""Added to the bin of an element that is not plain."""
IN_BIN = OTHER - 1

# Places in what `tally_plain` returns.
PLAIN, CORRECT, FAITHFUL, BEYOND, ERROR, UNCERTAINTY, ABSOLUTE, DISTANCE, NEARER = range(9)


@njit(inline="always")
def bin_of(size: float) -> Any:
    """The bin of an error >= 0: 0 for 0 itself, 1 below 2^-6, then 256 bins to the octave (the
    float's leading bits), then the open one."""
    bits = bits_of(size)
    k = min(max((bits >> (52 - _SUB_BITS)) - _BASE, 1), OPEN_BIN)
    return 0 if bits == 0 else k


def lower_edges(bins: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The powers of two below the errors of bins; 0 for the first two."""
    octaves = ((bins - _FIRST) >> _SUB_BITS) + _LOWEST
    return np.where(bins < _FIRST, 0.0, np.ldexp(1.0, octaves))


@njit(inline="always")
def inverse_ulp(power: Any, p: int) -> float:
    """1 / ulp(z), from a normal z's exponent field in place: 2 * 1023 + p - 1, less that field."""
    return float_of((np.int64(2046 + p - 1) << 52) - power)


@inner
def tally_plain(
    got: Any,
    hi: Any,
    lo: Any,
    radius: Any,
    scale: Any,
    bound: Any,
    format: Any,
    ratio: float,
    sizes: Any,
    bins: Any,
) -> Any:
    """Fills sizes (|error| in ulp) and bins of the plain elements; the others get 0 and NO_BIN.
    Returns the plain elements' counts, the bits of their maxima (-1 where there are none), and how
    many may have a certain error / bound above `ratio` (all with a bound where that is -1).

    Let 2^q = ulp(z). z's binade fixes it: the interval, even widened outwards, stays in that
    binade. got / z is in [1/2, 2], so got - hi is exact (Sterbenz), and (got - hi) - lo is the
    error to 2^-53 of itself. Scaling by powers of two is exact here, so these are the bits that
    `compare` finds in units of 2^q. A got with z's exponent that is not the power of two itself has
    neighbours one ulp(z) away: it is faithful where it is certainly nearer to z than that.
    Rounding: see decisions._mark_doubtful. Bits are added to those of z with its sign, so a got of
    the other sign is neither right nor beside z.
    A division for every element would cost a fifth of the time. A product tests share / bound >
    ratio instead, a little low, so that it misses no share > 0. A NaN bound passes no test.
    """
    full_width()
    p, emin, emax = format
    lowest = np.int64(max(emin + 1, -900) + 1023) << 52
    highest = np.int64(emax - 1 + 1023) << 52
    narrow = p < 53
    shift = np.int64(53 - p)
    half = np.int64(1) << (shift - 1) if narrow else np.int64(0)
    kept = ~((np.int64(1) << shift) - 1)
    unknown, threshold = ratio < 0.0, ratio * SLACK
    plains, corrects, faithfuls, beyonds, nearer = 0, 0, 0, 0, 0
    none = np.int64(-1)
    error, uncertainty, absolute, distance = none, none, none, none
    for i in range(hi.size):
        g, z, r = np.float64(got[i]), hi[i], radius[i]
        h, reach = abs(z), abs(lo[i]) + r
        z_bits, g_bits = bits_of(z), bits_of(g)
        power = z_bits & EXPONENT
        low, high = bits_of(h - reach) - OUTWARD, bits_of(h + reach) + OUTWARD
        if narrow:
            decided = (((low + half) ^ (high + half)) & kept) == 0
        else:
            gap = float_of(power) * (2.0**-54 if z_bits & SIGNIFICAND == 0 else 2.0**-53)
            decided = reach < gap * SLACK
        rounded = (z_bits + half) & kept
        right = g_bits == rounded
        beside = (((g_bits ^ z_bits) & ~SIGNIFICAND) == 0) & (g_bits & SIGNIFICAND != 0)
        plain = (
            (power >= lowest)
            & (power <= highest)
            & (scale[i] == 0)
            & decided
            & ((((low ^ power) | (high ^ power)) & ~SIGNIFICAND) == 0)
            & (right | beside)
            & (g_bits & ~kept == 0)
            & (not bound[i] < 0.0)
        )
        inverse = inverse_ulp(power, p)
        away = abs((g - z) - lo[i])
        size, spread = away * inverse, r * inverse
        certain = (away - r) * SLACK
        plains += plain
        corrects += plain & right
        faithfuls += plain & (right | (size + spread < 1.0))
        beyonds += plain & (certain > bound[i])
        more = (certain > 0.0) & (certain >= threshold * bound[i])
        nearer += plain & (more | (unknown & (bound[i] >= 0.0)))
        sizes[i] = size if plain else 0.0
        bins[i] = bin_of(size) if plain else NO_BIN
        error = max(error, bits_of(size) if plain else none)
        uncertainty = max(uncertainty, bits_of(spread) if plain else none)
        absolute = max(absolute, bits_of(away) if plain else none)
        distance = max(distance, abs(g_bits - rounded) if plain else none)
    distance = distance >> shift
    return (
        plains, corrects, faithfuls, beyonds, error, uncertainty, absolute, distance, nearer,
    )  # fmt: skip
