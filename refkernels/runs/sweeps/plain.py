"""The kernel that runs over every float32 input of a sweep and settles nearly all of them.

`judge_block` compares answers g with hi of the fast tier, |hi - z| <= error |z|. An element is
*plain* if it needs no further judgement: both ends of the interval round to one float r and
  g = r, bit for bit (also infinities and zeros), or g and r are both NaN: correctly rounded; or
  g is r's neighbour, both finite, neither a power of two, one sign, |g - z| certainly < 1 ulp: g
  is faithful (away from powers of two all spacings around z are one ulp) and 1 apart; or
  r is a zero, z is none, and g is the zero of the other sign, as where a product underflows.
Plain elements are counted by a branch-free loop that LLVM vectorises; the others are listed, for
`judging.judge_elements`.

The errors of the loop: ulp is taken at hi. Where z has another ulp than hi, the interval holds a
power of two; g = r is then that power, |g - z| <= error |z| < 2^24 error ulp in either unit, and
r's neighbours are not plain. Everywhere else (g - hi) / ulp is off by |hi - z| / ulp <= 2^24 error,
and by two roundings of a number below 1. `fast_uncertainty` is the sum, rounded up.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.bits import bits_of, float_of
from refkernels.arithmetic.compiler import intrinsic, ir, types
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.runs.sweeps.judging import (
    COMPARED,
    CORRECT,
    EXPECTED,
    FAITHFUL,
    INPUTS,
    INVERSIONS,
    SIGNED_ZEROS,
    note_first,
)

SPAN = 1024
"""Elements of one branch-free loop; they are gone through again only if some are to be listed."""
_INFINITY, _MAGNITUDE, _FRACTION = np.int32(0x7F800000), np.int32(0x7FFFFFFF), np.int32(0x7FFFFF)
_EXPONENT = np.int64(0x7FF << 52)
_SUBNORMAL = np.int64((1023 - 126) << 52)
_HALF = np.int64(1 << 28)  # of the distance of two float32, as bits of a float64
_ORDINARY = np.int64((1023 - 125) << 52)  # twice the smallest normal float32
_ORDINARIES = np.uint64(0x7FF << 52) - np.uint64(_ORDINARY)  # from there to infinity
_WIDE_MAGNITUDE, _WIDE_FRACTION = np.int64((1 << 63) - 1), np.int64((1 << 52) - 1)
_INVERSE, _TO_ULP = np.int64(2046 << 52), np.int64(23 << 52)  # of a power of two; from it to ulp


@intrinsic
def _bits32(typing_context, x):
    """The bits of a float32 as int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


def widened(error: float) -> float:
    """w such that [fl(hi (1 - w)), fl(hi (1 + w))] holds z: from hi / (1 ± error) and the roundings
    of 1 ± w and of the two products, 2^-53 each."""
    return error * (1.0 + 2.0**-20) + 2.0**-52


@inner
def fast_uncertainty(widening):
    """How far a plain element's error may be from what `judge_block` calculates, in ulp."""
    return math.ldexp(widening, 24) + 2.0**-52


@njit(inline="always")
def _classify(h, g, bits, ends):
    """(correctly rounded, plain, both finite, bits of |g - h| / ulp(h))."""
    below, above, faithful = ends
    low, high = _bits32(np.float32(h * below)), _bits32(np.float32(h * above))
    got, rounded = bits & _MAGNITUDE, low & _MAGNITUDE
    decided = low == high
    right = (decided & (bits == low)) | ((got > _INFINITY) & (rounded > _INFINITY))
    finite = (got < _INFINITY) & (rounded < _INFINITY)
    step = got - rounded
    inverse = float_of(_INVERSE - (max(bits_of(h) & _EXPONENT, _SUBNORMAL) - _TO_ULP))
    error = bits_of((np.float64(g) - h) * inverse) & np.int64(0x7FFFFFFFFFFFFFFF)
    beside = decided & finite & ((bits ^ low) >= 0) & ((step == 1) | (step == -1))
    neighbour = (
        beside & (error < faithful) & ((got & _FRACTION) != 0) & ((rounded & _FRACTION) != 0)
    )
    other_zero = decided & (h != 0.0) & ((got | rounded) == 0)
    return right, right | neighbour | other_zero, finite, error


@njit(nogil=True)
def _count_near(got, hi, margin, record):
    """(correctly rounded, whether an error exceeds `record`) of a span of ordinary answers that are
    all plain, by integers alone; -1 for a span that holds any other: zero, NaN, an infinity, a
    subnormal or its neighbour. The record is in units of 2^-29 ulp.

    Consecutive ordinary float32 are 2^29 apart as bits of a float64, and so the point half way is
    half way in bits too, below a power of two as above it. The distance of the bits, in units of
    2^-29, is |g - hi| / ulp(hi). If it differs from 1/2 and 1 by more than z may differ from hi, in
    bits, then the distance to z decides likewise. The bits of numbers of opposite signs are at
    least 2^63 - 2^62 apart.
    """
    full_width()
    rights, all_plain, exceeds = np.int64(0), True, False
    inner, outer, farthest = _HALF - margin, _HALF + margin, 2 * _HALF - margin
    for i in range(hi.size):
        g = bits_of(np.float64(got[i]))
        ordinary = np.uint64((g & _WIDE_MAGNITUDE) - _ORDINARY) < _ORDINARIES
        away = abs(bits_of(hi[i]) - g)
        right = away <= inner
        within = ((g + 2 * _HALF) & _WIDE_FRACTION) > 4 * _HALF  # of a binade, not at its ends
        beside = (away >= outer) & (away <= farthest) & within
        all_plain &= ordinary & (right | beside)
        exceeds |= away > record
        rights += right
    return rights if all_plain else np.int64(-1), exceeds


@njit(nogil=True)
def _furthest(got, hi):
    """The largest error of a span that `_count_near` has counted, in units of 2^-29 ulp."""
    full_width()
    furthest = np.int64(0)
    for i in range(hi.size):
        furthest = max(furthest, abs(bits_of(hi[i]) - bits_of(np.float64(got[i]))))
    return furthest


@njit(nogil=True)
def _count(got, bits, hi, ends, marks):
    """(not plain, correct, compared, zeros of the other sign, bits of the largest error) of the
    plain elements of a span; the others are marked with 1, those zeros with 2."""
    full_width()
    not_plain, correct, compared, largest = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    zeros = np.int64(0)
    for i in range(hi.size):
        right, plain, finite, error = _classify(hi[i], got[i], bits[i], ends)
        with_error = plain & finite
        zero = plain & (not right) & (got[i] == 0.0)
        zeros += zero
        marks[i] = np.int64(not plain) + 2 * np.int64(zero)
        not_plain += not plain
        correct += right
        compared += with_error
        largest = max(largest, error if with_error else np.int64(0))
    return not_plain, correct, compared, zeros, largest


@njit(nogil=True)
def _count_inversions(got, before, hi, hi_before, widening):
    """The number of neighbouring inputs whose answers make a step while hi does not certainly step
    the same way; NaNs have no order."""
    full_width()
    inversions = np.int64(0)
    for i in range(hi.size):
        spread = 2.0 * widening * (abs(hi[i]) + abs(hi_before[i]))
        step = hi[i] - hi_before[i]
        up = (got[i] > before[i]) & (step <= spread)
        down = (got[i] < before[i]) & (step >= -spread)
        inversions += up | down
    return inversions


@njit(nogil=True)
def fill_patterns(x, first):
    """x = first, first + 1, ..."""
    full_width()
    for i in range(x.size):
        x[i] = np.uint32(first + i)


@njit(nogil=True)
def judge_block(
    got,
    bits,
    hi,
    previous,
    widening,
    first,
    offset,
    binade,
    table,
    listed,
    listed_hi,
    steps,
    filled,
):
    """Judge answers to the float32 patterns first, first + 1, ..., all of one binade.

    got, bits: the answers as float32 and as int32; hi: the fast tier; previous: answer and hi of
    the previous input, NaN if there is none. `table` is a tally's. An element that is not plain
    goes to `listed` (its place plus `offset`) and `listed_hi`; a possible inversion whose order the
    fast tier cannot decide goes to `steps`; `filled` counts both lists.
    """
    full_width()
    counts, distances, worst, worst_bits, firsts = table
    faithful = bits_of(1.0 - 2.0 * fast_uncertainty(widening))
    ends = 1.0 - widening, 1.0 + widening, faithful
    row = counts[binade]
    margin = np.int64(math.ldexp(widening, 53)) + 2
    marks = np.empty(SPAN, np.int64)
    record, place = -1.0, 0  # the largest error beyond the binade's, and its span
    for start in range(0, hi.size, SPAN):
        end = min(start + SPAN, hi.size)
        part, part_bits, part_hi = got[start:end], bits[start:end], hi[start:end]
        not_plain, compared, zeros, largest = np.int64(0), end - start, np.int64(0), np.int64(0)
        known = np.int64(math.ldexp(max(record, worst[binade, 0]), 29))
        correct, exceeds = _count_near(part, part_hi, margin, known)
        if correct >= 0 and exceeds:
            largest = bits_of(math.ldexp(np.float64(_furthest(part, part_hi)), -29))
        if correct < 0:
            counted = _count(part, part_bits, part_hi, ends, marks)
            not_plain, correct, compared, zeros, largest = counted
            row[SIGNED_ZEROS] += zeros
            if zeros:
                at = start + np.argmax(marks[: end - start] == 2)
                note_first(firsts, SIGNED_ZEROS, first + at, np.int64(bits[at]) & 0xFFFFFFFF)
        row[INPUTS] += end - start - not_plain
        row[CORRECT] += correct
        row[COMPARED] += compared
        row[FAITHFUL] += end - start - not_plain
        row[EXPECTED] += end - start - not_plain - compared
        neighbours = end - start - not_plain - correct - zeros
        distances[0] += compared - neighbours
        distances[1] += neighbours
        if compared and float_of(largest) > max(record, worst[binade, 0]):
            record, place = float_of(largest), start
        if not_plain:
            _list(marks, part_hi, offset + start, listed, listed_hi, filled)
        # Correctly rounded answers are in the order of the exact values.
        if correct < end - start and _count_inversions(
            part[1:], part[:-1], part_hi[1:], part_hi[:-1], widening
        ):
            for i in range(1, part.size):
                _invert(part[i], part[i - 1], part_hi[i], part_hi[i - 1], widening,
                            first + start + i, offset + start + i, bits[start + i], row, firsts,
                            steps, filled)  # fmt: skip
        g, h = (previous[0], previous[1]) if start == 0 else (
            np.float64(got[start - 1]), hi[start - 1])  # fmt: skip
        _invert(part[0], g, part_hi[0], h, widening, first + start, offset + start, bits[start],
                row, firsts, steps, filled)  # fmt: skip
    if record >= 0.0:
        end = min(place + SPAN, hi.size)
        _keep_worst(got[place:end], bits[place:end], hi[place:end], ends, bits_of(record), binade,
                    first + place, worst, worst_bits)  # fmt: skip


@njit(nogil=True)
def _keep_worst(got, bits, hi, ends, largest, binade, first, worst, worst_bits):
    """Keep the first element whose error is the largest of its span."""
    for i in range(hi.size):
        _, plain, finite, error = _classify(hi[i], got[i], bits[i], ends)
        if plain & finite & (error == largest):
            size = float_of(largest)
            worst[binade, 0] = size
            worst[binade, 1] = size if np.float64(got[i]) > hi[i] else -size
            worst[binade, 2] = fast_uncertainty(ends[1] - 1.0)
            worst_bits[binade, 0] = first + i
            worst_bits[binade, 1] = np.int64(bits[i]) & 0xFFFFFFFF
            return


@njit(nogil=True)
def _list(marks, hi, offset, listed, listed_hi, filled):
    number = filled[0]
    for i in range(hi.size):
        listed[number] = offset + i  # overwritten by the next one unless it is marked
        listed_hi[number] = hi[i]
        number += marks[i] & 1
    filled[0] = number


@njit(nogil=True)
def _invert(g, g_before, h, h_before, widening, pattern, place, bits, row, firsts, steps, filled):
    """Count the step to this input if it certainly goes the wrong way; list it if it may."""
    spread, step = 2.0 * widening * (abs(h) + abs(h_before)), h - h_before
    against = ((g > g_before) & (step < -spread)) | ((g < g_before) & (step > spread))
    unknown = ((g > g_before) | (g < g_before)) & (abs(step) <= spread)
    if against:
        row[INVERSIONS] += 1
        note_first(firsts, INVERSIONS, pattern, np.int64(bits) & 0xFFFFFFFF)
    elif unknown:
        steps[filled[1]] = place
        filled[1] += 1
