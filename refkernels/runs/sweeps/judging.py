"""Judges single answers: the columns of a tally, and the kernel that fills them.

The definitions are the project's own, `metrology.elements.compare` and the flags of
`metrology.special_values`.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.bits import EXPONENT, bits_of
from refkernels.arithmetic.jit import inner, njit
from refkernels.metrology import special_values as flag
from refkernels.metrology.elements import SLACK, compare
from refkernels.metrology.plain import inverse_ulp

# Columns of a tally's counts, a row for each binade of the input.
COUNTED = {
    "correct": flag.CORRECT,
    "compared": flag.COMPARED,
    "faithful": flag.FAITHFUL,
    "expected_specials": flag.EXPECTED_SPECIAL,
    "special_value_mismatches": flag.SPECIAL_MISMATCH,
    "stray_nans": flag.STRAY_NAN,
    "signed_zero_mismatches": flag.SIGNED_ZERO,
    "nonzero_at_zero": flag.NONZERO_AT_ZERO,
    "sign_changes": flag.SIGN_CHANGE,
    "flushed_subnormals": flag.FLUSHED,
    "overflows": flag.OVERFLOW,
    "undecided": flag.UNDECIDED,
}
COLUMNS = ("inputs", *COUNTED, "inversions")
INPUTS, CORRECT, COMPARED, FAITHFUL, EXPECTED = range(5)
INVERSIONS, SIGNED_ZEROS = len(COLUMNS) - 1, COLUMNS.index("signed_zero_mismatches")
_FLAGS = tuple(COUNTED.values())
FIRST_KEPT = 5  # columns from here on count faults, and the first input of each is kept

OPEN, IS_FAITHFUL, WITHIN_BOUND, UNFAITHFUL = range(4)  # of an element, in `judge_elements`

# Distances 0 ... 1023 are counted one by one, larger ones by powers of two.
EXACT_DISTANCES = 1024
DISTANCES = EXACT_DISTANCES + 54

_HUGE = 2.0**199  # of a value this large, the fast tier knows only that it is this large
_TINY = 2.0**-199  # of a value this small, only that it is this small, and its sign
_SHARP = 2.0**-10  # elements with a larger uncertainty, in ulp, go to the oracle's later tiers


@njit(nogil=True)
def note_first(firsts, column, pattern, got):
    """Keep the smallest pattern counted in a column, and its answer."""
    if firsts[column, 0] < 0 or pattern < firsts[column, 0]:
        firsts[column, 0] = pattern
        firsts[column, 1] = got


@njit(nogil=True)
def judge_elements(
    patterns, got, got_bits, hi, lo, radius, scale, limits, shift, final, least, table, outcomes
):
    """Judge single elements against (hi + lo ± radius) 2^scale by the project's own definition.

    patterns and got_bits are int64, got float64; limits = (p, emin, emax); an element's binade is
    its pattern >> shift. Unless `final`, the enclosure is the fast tier's (lo and scale 0), which
    knows less about huge and tiny values. Elements that it does not settle are not counted.
    `outcomes` receives OPEN for those, for the others IS_FAITHFUL, or else WITHIN_BOUND where the
    error is no more than rate |z| or floor, `least`, for inputs that are no powers of two.
    """
    counts, distances, worst, worst_bits, firsts = table
    p, emin, emax = limits
    significand = (np.int64(1) << shift) - 1
    ends = 2.0**p, 2.0 ** (emin + 1), 2.0 ** (emax - 1)
    last = math.nan, math.nan, 0.0, 0.0, np.int64(0), np.int64(0)
    compared = compare(0.0, 0.0, 0.0, 0.0, 0, p, emin, emax)
    for i in range(patterns.size):
        h, r = hi[i], radius[i]
        ordinary = abs(h) < math.inf and scale[i] == 0 and patterns[i] & significand != 0
        within = ordinary and abs(got[i] - h) <= max(least[0] * (abs(h) - r), least[1])
        outcomes[i] = WITHIN_BOUND if within else UNFAITHFUL
        binade = patterns[i] >> shift
        inverse = inverse_ulp(max(bits_of(h) & EXPONENT, np.int64(emin + 1023) << 52), p)
        distance = np.uint64(0) if final else _far(got[i], h, r, inverse, ends)
        if distance:
            counts[binade, INPUTS] += 1
            counts[binade, COMPARED] += 1
            distances[_distance_bin(distance)] += 1
            error, uncertainty = (got[i] - h) * inverse, r * inverse
            _keep_worst(worst, worst_bits, binade, error, uncertainty, patterns[i], got_bits[i])
            continue
        if not final and 0.0 < abs(h) <= _TINY:
            h, r = math.copysign(_TINY, h), _TINY  # anywhere between zero and 2 _TINY
        size = abs(got[i] - h) * inverse  # half an ulp from a float, or one from being faithful
        near = min(abs(size - 0.5 - np.floor(size)), abs(size - 1.0)) <= 2.0 * r * inverse
        if not final and (near or _HUGE <= abs(h) < math.inf):
            outcomes[i] = OPEN
            continue
        this = got[i], h, lo[i], r, scale[i], got_bits[i]
        if this != last:  # where a function saturates, one question follows another
            last, compared = this, compare(got[i], h, lo[i], r, scale[i], p, emin, emax)
        flags, error, uncertainty, _, _, distance = compared
        if not final and (flags & flag.UNDECIDED or uncertainty > _SHARP):
            outcomes[i] = OPEN
            continue
        if flags & flag.FAITHFUL:
            outcomes[i] = IS_FAITHFUL
        counts[binade, INPUTS] += 1
        for column in range(len(_FLAGS)):
            if flags & _FLAGS[column]:
                counts[binade, column + 1] += 1
                if column + 1 >= FIRST_KEPT:
                    note_first(firsts, column + 1, patterns[i], got_bits[i])
        if flags & flag.COMPARED:
            distances[_distance_bin(distance)] += 1
            _keep_worst(worst, worst_bits, binade, error, uncertainty, patterns[i], got_bits[i])


@inner
def _far(g, z, radius, inverse, ends):
    """The distance of an answer that is not certainly less than an ulp away from z, has another
    rounding and no other fault: interval and answer are of one binade, or of one and subnormal
    numbers, and of one sign, below the format's last binades, and the rounding is decided, and no
    zero. 0 for all other answers. inverse = 1 / ulp(z), ends = 2^p, 2^(emin + 1), 2^(emax - 1).

    t and unit are exact, and so is their difference but for a rounding of 2^-53.
    """
    top, subnormal, largest = ends
    t, unit, reach = abs(z) * inverse, abs(g) * inverse, radius * inverse
    nearest, least = np.rint(t), 0.5 * top if abs(z) >= subnormal else 0.0
    one_binade = t - reach > least and t + reach < top * SLACK and least <= unit < top
    decided = abs(t - nearest) + reach < 0.5 * SLACK and min(unit, nearest) > 0.0
    ordinary = (g < 0.0) == (z < 0.0) and abs(z) < largest
    far = one_binade and decided and ordinary and abs(unit - t) >= 1.0
    return np.uint64(abs(unit - nearest)) if far else np.uint64(0)


@inner
def _keep_worst(worst, bits, binade, error, uncertainty, pattern, got):
    """Keep the largest error of a binade; of equal ones, the first."""
    size = abs(error)
    tie = size == worst[binade, 0] and pattern < bits[binade, 0]
    if size > worst[binade, 0] or tie or bits[binade, 0] < 0:
        worst[binade, 0], worst[binade, 1], worst[binade, 2] = size, error, uncertainty
        bits[binade, 0], bits[binade, 1] = pattern, got


@inner
def _distance_bin(distance):
    """The bin of a distance: its own below EXACT_DISTANCES, above it one for each power of two."""
    if distance < np.uint64(EXACT_DISTANCES):
        return np.int64(distance)
    exponent, remaining = 10, distance >> np.uint64(11)
    while remaining:
        exponent += 1
        remaining >>= np.uint64(1)
    return EXACT_DISTANCES + exponent - 10


def distance_label(place: int) -> str:
    """The name of a bin in a record: "0", "1", ..., "1023", "1024-2047", ..."""
    if place < EXACT_DISTANCES:
        return str(place)
    low = 1 << (place - EXACT_DISTANCES + 10)
    return f"{low}-{2 * low - 1}"


def widest(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Answers as float64, exactly."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is data here
        return array.astype(np.float64)
