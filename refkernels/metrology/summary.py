"""The summary of a whole array: counts, ULP figures, error / bound, and its worst elements.

One parallel pass over blocks of fixed size, combined in order: the figures do not depend on the
number of threads. `plain.tally_plain` takes nearly all elements, vectorised; the others go one by
one. Percentiles are exact (nearest rank): the pass also counts the errors in narrow bins and notes
each element's bin, so that only the errors of three bins need computing again and sorting.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, small
from refkernels.arithmetic.arrays import as_float_array, spread, to_float64
from refkernels.arithmetic.bits import bits_of, float_of
from refkernels.arithmetic.blocks import SPAN, each_block, flat
from refkernels.arithmetic.decisions import step_of
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.wording import shown
from refkernels.metrology import array_summary, plain
from refkernels.metrology import special_values as flag
from refkernels.metrology.distribution import TALLIED, Errors
from refkernels.metrology.elements import SLACK, compare
from refkernels.metrology.plain import (
    IN_BIN,
    NO_BIN,
    OTHER,
    bin_of,
    fill_bins,
    hold_plain,
    tally_plain,
)
from refkernels.metrology.ulp_errors import as_enclosure, check_shapes, widened

_FLAGS = 14
_NOT_CORRECT, _BEYOND, _PLAIN, _PLAIN_FAITHFUL = range(_FLAGS, _FLAGS + 4)
_COUNTERS = _FLAGS + 4
# Places in a block's maxima: |error|, uncertainty, absolute, absolute at zero, ratio.
_ERROR, _UNCERTAINTY, _ABSOLUTE, _AT_ZERO, _RATIO = range(5)
_LANES = 8


@dataclass(frozen=True)
class Summary:
    """The figures of one output. `worst_*` are flat (C order) indices, None if there is none."""

    counts: dict[str, int]
    max: float
    max_uncertainty: float
    mean: float
    percentiles: dict[str, float]
    max_distance: int
    histogram: list[tuple[float, int]]
    max_abs: float
    max_abs_at_zero: float
    max_ratio: float
    worst_error: int | None
    worst_ratio: int | None
    first_mismatch: int | None


@with_default_fenv
def summarise(
    got: npt.NDArray[Any],
    reference: Enclosure,
    bound: npt.NDArray[np.float64] | None = None,
    format: Format | str | None = None,
    distribution: bool = True,
) -> Summary:
    """The Summary of got against reference and bound (None: infinite, but no overflow allowed).

    `distribution`: whether percentiles and histogram are wanted; they are empty otherwise.

    An element exceeds its bound only where it certainly does: |got - z| - radius > bound.
    Where the bound is infinite, an intermediate overflow is allowed: a NaN or infinity is neither a
    mismatch nor an ULP figure, but is counted among the overflows. So is the NaN that a streaming
    mean gives for a row with an infinity, whose mean is infinite.

    Raises ValueError where got and reference differ in shape, and for an unknown format.
    """
    array, reference = as_float_array(got, "got"), as_enclosure(reference)
    check_shapes(array, reference)
    target = formats.of(array) if format is None else formats.get(format)
    if not isinstance(distribution, bool):
        raise TypeError(f"distribution is {shown(distribution)}, but it must be True or False.")
    limit = flat(_shaped(math.nan if bound is None else bound, reference.shape))
    limits = (target.p, target.emin, target.emax)
    columns = (widened(array), *reference.columns())
    if small.allowance.covers(array_summary.figures, reference.size, kernel=_tally):
        return Summary(*array_summary.figures(columns, limit, limits))
    blocks = -(-reference.size // TALLIED)
    tallies = (
        np.empty(reference.size, np.uint16),
        np.zeros((blocks, _COUNTERS), np.int64),
        np.zeros((blocks, 5)),
        np.full((blocks, 3), -1, np.int64),
        np.zeros(blocks),
        np.zeros(blocks, np.int64),
        np.zeros((blocks, NO_BIN + 1), np.int32),
    )
    each_block(_tally, reference.size, *columns, limit, limits, tallies, block=TALLIED)
    errors = Errors(columns, limits, tallies[0], tallies[-1]) if distribution else None
    return _combine(reference.size, errors, *tallies[1:-1])


def _shaped(bound: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    return spread(to_float64(as_float_array(bound, "bound")), shape, "bound")


@njit(nogil=True)
def _tally(first, last, got, hi, lo, radius, scale, bound, format, tallies):
    """The figures of one block, into its places of `tallies`."""
    bins, counts, maxima, places, sums, distances, filled = tallies
    block = first // TALLIED
    # Views are taken once: each one costs an atomic reference count.
    count, maximum, place, fill = counts[block], maxima[block], places[block], filled[block]
    steps = step_of(lo, hi), step_of(radius, hi), step_of(scale, hi), step_of(bound, hi)
    sizes, lanes = np.empty(SPAN), np.zeros(_LANES)
    furthest = np.uint64(0)
    unbounded = steps[3] == 0 and math.isnan(bound[0])
    for i in range(first, last, SPAN):
        n = min(SPAN, last - i)
        j, k, m, b = i * steps[0], i * steps[1], i * steps[2], i * steps[3]
        parts = hi[i : i + n], lo[j : j + n], radius[k : k + n], scale[m : m + n]
        g, limits, binned, errors = got[i : i + n], bound[b : b + n], bins[i : i + n], sizes[:n]
        counted = tally_plain(g, *parts, format, errors)
        _take(counted, i, errors, count, maximum, place)
        furthest = max(furthest, np.uint64(counted[plain.DISTANCE]))
        if not unbounded:
            ratio = maximum[_RATIO] if place[1] >= 0 else -1.0
            beyond, candidates = hold_plain(g, *parts[:3], limits, errors, ratio)
            count[_BEYOND] += beyond
            if candidates > 0:
                _raise_ratio(i, g, *parts[:3], limits, errors, maximum, place)
        fill_bins(errors, binned)
        if counted[plain.PLAIN] < n:
            other_distance = _tally_others(
                i, g, *parts, limits, format, errors, binned, count, maximum, place
            )
            furthest = max(furthest, other_distance)
        _add(errors, lanes)
        for e in range(n):
            fill[binned[e] & IN_BIN] += 1
    total = 0.0
    for lane in lanes:
        total += lane
    sums[block] = total
    # A distance of 2^63 and more keeps its bits in the int64.
    distances[block] = np.int64(furthest)


@inner
def _take(counted, start, sizes, count, maximum, place):
    """Adds the plain elements' counts and maxima, and searches for the place of a new maximum."""
    count[_PLAIN] += counted[plain.PLAIN]
    count[_PLAIN_FAITHFUL] += counted[plain.FAITHFUL]
    count[_NOT_CORRECT] += counted[plain.PLAIN] - counted[plain.CORRECT]
    if counted[plain.PLAIN] == 0:
        return
    maximum[_UNCERTAINTY] = max(maximum[_UNCERTAINTY], float_of(counted[plain.UNCERTAINTY]))
    maximum[_ABSOLUTE] = max(maximum[_ABSOLUTE], float_of(counted[plain.ABSOLUTE]))
    if place[0] < 0 or float_of(counted[plain.ERROR]) > maximum[_ERROR]:
        maximum[_ERROR] = float_of(counted[plain.ERROR])
        e = 0
        while bits_of(sizes[e]) != counted[plain.ERROR]:
            e += 1
        place[0] = start + e


@inner
def _raise_ratio(start, got, hi, lo, radius, bound, sizes, maximum, place):
    """The largest certain error / bound of the plain elements, if it exceeds the one so far. A
    vectorised pass finds it, on the bits of ratios >= 0, and another its place."""
    largest = np.int64(-1)
    for e in range(hi.size):
        largest = max(largest, _ratio_bits(got[e], hi[e], lo[e], radius[e], bound[e], sizes[e]))
    if largest < 0 or (place[1] >= 0 and float_of(largest) <= maximum[_RATIO]):
        return
    maximum[_RATIO] = float_of(largest)
    e = 0
    while _ratio_bits(got[e], hi[e], lo[e], radius[e], bound[e], sizes[e]) != largest:
        e += 1
    place[1] = start + e


@inner
def _ratio_bits(g, hi, lo, radius, bound, size):
    """The bits of certain error / bound; -1 without a bound, and where the element is not plain."""
    certain = (abs((np.float64(g) - hi) - lo) - radius) * SLACK
    ratio = (certain if certain > 0.0 else 0.0) / bound
    # Without a branch, or the loop is not vectorised. 0 / 0 is no excess.
    bits = bits_of(ratio if ratio == ratio else 0.0)
    return bits if (size >= 0.0) & (bound == bound) else np.int64(-1)


@inner
def _tally_others(
    start, got, hi, lo, radius, scale, bound, format, sizes, bins, count, maximum, place
):
    """The elements that are not plain, one by one; the largest distance among them."""
    p, emin, emax = format
    furthest = np.uint64(0)
    for e in range(hi.size):
        if sizes[e] >= 0.0:
            continue
        sizes[e] = 0.0
        g = np.float64(got[e])
        element = compare(g, hi[e], lo[e], radius[e], scale[e], p, emin, emax)
        size = _count(start + e, g, element, bound[e], hi[e], count, maximum, place)
        if size >= 0.0:
            sizes[e] = size
            bins[e] = bin_of(size) | OTHER
            furthest = max(furthest, element[5])
    return furthest


@inner
def _add(sizes, lanes):
    """Adds element e to lane e mod 8: a fixed order, and no chain of dependent additions."""
    a, b, c, d, e, f, g, h = lanes
    whole = sizes.size - sizes.size % _LANES
    for i in range(0, whole, _LANES):
        a += sizes[i]
        b += sizes[i + 1]
        c += sizes[i + 2]
        d += sizes[i + 3]
        e += sizes[i + 4]
        f += sizes[i + 5]
        g += sizes[i + 6]
        h += sizes[i + 7]
    for i in range(whole, sizes.size):
        a += sizes[i]
    lanes[0], lanes[1], lanes[2], lanes[3] = a, b, c, d
    lanes[4], lanes[5], lanes[6], lanes[7] = e, f, g, h


@inner
def _count(i, g, element, bound, hi, counts, maxima, places):
    """Tallies one element; its |error|, or NaN where it takes no part in the ULP figures."""
    flags, error, uncertainty, absolute, certain, _ = element
    allowed = bound == math.inf and not math.isnan(hi) and not math.isfinite(g)
    if flags & flag.STRAY_NAN != 0:
        flags |= flag.OVERFLOW if allowed else flag.SPECIAL_MISMATCH
    elif allowed and flags & flag.SPECIAL_MISMATCH != 0:
        flags ^= flag.SPECIAL_MISMATCH | flag.OVERFLOW
    elif allowed and flags & flag.OVERFLOW != 0:
        flags &= ~(flag.COMPARED | flag.SIGN_CHANGE | flag.UNDECIDED)
    for k in range(_FLAGS):
        counts[k] += (flags >> k) & 1
    unsigned_zero = flag.SIGNED_ZERO | flag.EXACT_ZERO
    if flags & (flag.CORRECT | flag.UNDECIDED) == 0 and flags & unsigned_zero != unsigned_zero:
        counts[_NOT_CORRECT] += 1
    if flags & flag.SPECIAL_MISMATCH != 0 and places[2] < 0:
        places[2] = i
    if not math.isnan(absolute) and not (allowed and flags & flag.CORRECT == 0):
        _judge_absolute(i, flags, absolute, certain, bound, counts, maxima, places)
    if flags & flag.COMPARED == 0:
        return math.nan
    maxima[_UNCERTAINTY] = max(maxima[_UNCERTAINTY], uncertainty)
    size = abs(error)
    if places[0] < 0 or size > maxima[_ERROR] or (size == maxima[_ERROR] and i < places[0]):
        maxima[_ERROR] = size
        places[0] = i
    return size


@inner
def _judge_absolute(i, flags, absolute, certain, bound, counts, maxima, places):
    maxima[_ABSOLUTE] = max(maxima[_ABSOLUTE], absolute)
    if flags & flag.NONZERO_AT_ZERO != 0:
        maxima[_AT_ZERO] = max(maxima[_AT_ZERO], absolute)
    if math.isnan(bound):
        return
    ratio = 0.0
    if certain > 0.0:
        ratio = 0.0 if bound == math.inf else certain / bound
    if certain > bound:
        counts[_BEYOND] += 1
    if places[1] < 0 or ratio > maxima[_RATIO] or (ratio == maxima[_RATIO] and i < places[1]):
        maxima[_RATIO] = ratio
        places[1] = i


def _combine(
    elements: int,
    errors: Errors | None,
    counts: npt.NDArray[np.int64],
    maxima: npt.NDArray[np.float64],
    places: npt.NDArray[np.int64],
    sums: npt.NDArray[np.float64],
    distances: npt.NDArray[np.int64],
) -> Summary:
    totals = counts.sum(axis=0)
    counted = {name: int(totals[bit.bit_length() - 1]) for name, bit in flag.COUNTED.items()}
    counted["compared"] += int(totals[_PLAIN])
    counted["faithful"] += int(totals[_PLAIN_FAITHFUL])
    counted["elements"] = elements
    counted["not_correctly_rounded"] = int(totals[_NOT_CORRECT])
    counted["beyond_bound"] = int(totals[_BEYOND])
    compared = counted["compared"]
    tops = maxima.max(axis=0, initial=0.0)
    return Summary(
        counts=counted,
        max=float(tops[_ERROR]),
        max_uncertainty=float(tops[_UNCERTAINTY]),
        mean=math.fsum(sums) / compared if compared else math.nan,
        percentiles=errors.percentiles() if errors else {},
        max_distance=int(distances.view(np.uint64).max(initial=np.uint64(0))),
        histogram=errors.histogram() if errors else [],
        max_abs=float(tops[_ABSOLUTE]),
        max_abs_at_zero=float(tops[_AT_ZERO]),
        max_ratio=float(tops[_RATIO]),
        worst_error=_place(maxima[:, _ERROR], places[:, 0]),
        worst_ratio=_place(maxima[:, _RATIO], places[:, 1]),
        first_mismatch=next((int(i) for i in places[:, 2] if i >= 0), None),
    )


def _place(values: npt.NDArray[np.float64], places: npt.NDArray[np.int64]) -> int | None:
    """The place of the first largest value among the blocks that have one."""
    present = np.flatnonzero(places >= 0)
    return int(places[present[np.argmax(values[present])]]) if present.size else None
