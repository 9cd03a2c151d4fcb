"""The plain elements of an array, nearly all of them: a block at a time, vectorised.

An element is plain where its figures need no case distinction. The exact value z and `got` are
normal numbers of one sign well inside the format's range; the enclosure decides the rounding of z
and stays in one binade; and got is that rounding, or lies in z's binade above its power of two. All
others go to `elements.compare`, which gives the same figures for a plain element.
"""

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.bits import EXPONENT, bits_of, float_of
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

NOT_PLAIN = -1.0
"""In place of the |error| of an element that is not plain."""

# Positions in the result of `tally_plain`.
PLAIN, CORRECT, FAITHFUL, ERROR, UNCERTAINTY, ABSOLUTE, DISTANCE = range(7)

_SIGN = np.int64(-(1 << 63))


@njit(inline="always")
def bin_of(size):
    """The bin of an error >= 0: 0 for 0 itself, 1 below 2^-6, then 256 bins to the octave (the
    float's leading bits), then the open one; NO_BIN for a negative number. The integers have 32
    bits: a vector holds twice as many as of 64 bits, and has instructions for their minimum and
    maximum."""
    bits = bits_of(size)
    leading = np.int32(bits >> np.int64(32))
    k = (leading >> np.int32(20 - _SUB_BITS)) - np.int32(_BASE)
    k = min(max(k, np.int32(1)), np.int32(OPEN_BIN))
    k = np.int32(0) if bits == 0 else k
    return np.uint16(np.int32(NO_BIN) if leading < 0 else k)


def lower_edges(bins: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The powers of two below the errors of bins; 0 for the first two."""
    octaves = ((bins - _FIRST) >> _SUB_BITS) + _LOWEST
    return np.where(bins < _FIRST, 0.0, np.ldexp(1.0, octaves))


@njit(inline="always")
def inverse_ulp(power, p):
    """1 / ulp(z), from a normal z's exponent field in place: 2 * 1023 + p - 1, less that field."""
    return float_of((np.int64(2046 + p - 1) << 52) - power)


@inner
def tally_plain(got, hi, lo, radius, scale, format, sizes):
    """Fills sizes with the |error| in ulp of the plain elements, NOT_PLAIN for the others. Returns
    their counts, the bits of their largest error, uncertainty and absolute error, and the largest
    distance.

    All decisions are made in units of ulp(z) = 2^q, on magnitudes: t = |z| / 2^q lies in the binade
    [2^(p - 1), 2^p), the format's numbers there are the integers, and `unit` is got with z's sign
    taken off: a got of the other sign is negative, and neither right nor beside z. Scaling by
    powers of two is exact here.
    The interval is within the binade where |t - centre| + reach is less than a quarter of 2^p, and
    holds no midpoint where |t - rint t| + reach is less than 1/2. Both differences are exact
    (Sterbenz); reach and the sum have relative errors of 2^-51, which SLACK covers.
    A got of z's exponent that is not its power of two has its neighbours one ulp(z) away: it is
    faithful where it is certainly nearer than that.
    got / z is in [1/2, 2], so that got - hi is exact (Sterbenz) and (got - hi) - lo is the error to
    2^-53 of itself: these are the bits that `compare` finds.
    Nothing here is narrower than 64 bits, or LLVM packs and unpacks every mask.
    """
    full_width()
    p, emin, emax = format
    lowest = np.int64(max(emin + 1, -900) + 1023) << 52
    highest = np.int64(emax - 1 + 1023) << 52
    inverse_field = np.int64(2046 + p - 1) << 52
    dropped = (np.int64(1) << np.int64(53 - p)) - 1
    quarter = 2.0 ** (p - 2)
    centre, inside, half = 3.0 * quarter, quarter * SLACK, 0.5 * SLACK
    plain_count, correct_count, faithful_count = np.int64(0), np.int64(0), np.int64(0)
    none = np.int64(0)
    error, uncertainty, absolute, distance = none, none, none, none
    for i in range(hi.size):
        g, z, r = np.float64(got[i]), hi[i], radius[i]
        z_bits, g_bits = bits_of(z), bits_of(g)
        power, sign = z_bits & EXPONENT, z_bits & _SIGN
        inverse = float_of(inverse_field - power)
        t, unit = float_of(z_bits ^ sign) * inverse, float_of(g_bits ^ sign) * inverse
        nearest, reach = np.rint(t), (abs(lo[i]) + r) * inverse
        right = unit == nearest
        plain = (
            (abs(t - nearest) + reach < half)
            & (abs(t - centre) + reach < inside)
            & (right | (abs(unit - centre) < quarter))
            & (power >= lowest)
            & (power <= highest)
            & (((g_bits & dropped) | scale[i]) == 0)
        )
        away = abs((g - z) - lo[i])
        size, spread = away * inverse, r * inverse
        plain_count += plain
        correct_count += plain & right
        faithful_count += plain & (right | (size + spread < 1.0))
        sizes[i] = size if plain else NOT_PLAIN
        error = max(error, bits_of(size if plain else 0.0))
        uncertainty = max(uncertainty, bits_of(spread if plain else 0.0))
        absolute = max(absolute, bits_of(away if plain else 0.0))
        distance = max(distance, bits_of(abs(unit - nearest) if plain else 0.0))
    steps = np.int64(float_of(distance))
    return plain_count, correct_count, faithful_count, error, uncertainty, absolute, steps


@inner
def fill_bins(sizes, bins):
    """Fills `bins` with the bins of the sizes that `tally_plain` wrote."""
    full_width()
    for i in range(sizes.size):
        bins[i] = bin_of(sizes[i])


@inner
def hold_plain(got, hi, lo, radius, bound, sizes, ratio):
    """Of the plain elements: how many certainly exceed their bound, and how many have a certain
    error / bound that may exceed `ratio` (-1: any does). Elements with a NaN bound are not counted.

    A division for every element would cost a fifth of the time. So error / bound > ratio is tested
    by a product, with a margin, so that no error > 0 is missed.
    """
    full_width()
    unknown, threshold = ratio < 0.0, ratio * SLACK
    beyond_count, candidates = np.int64(0), np.int64(0)
    for i in range(hi.size):
        plain, limit = sizes[i] >= 0.0, bound[i]
        excess = (abs((np.float64(got[i]) - hi[i]) - lo[i]) - radius[i]) * SLACK
        certain = excess if excess > 0.0 else 0.0
        beyond_count += plain & (certain > limit)
        more = (certain > 0.0) & (certain >= threshold * limit)
        candidates += plain & (more | (unknown & (limit == limit)))
    return beyond_count, candidates
