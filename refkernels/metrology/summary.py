"""What is said of a whole array: counts, ULP figures, error / bound, and where it is worst.

One parallel pass over chunks of fixed size, combined in order: the figures do not depend on the
number of threads. Percentiles are exact (nearest rank): the pass also counts the errors in narrow
bins, so that only the elements of one bin need sorting.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.jit import njit, prange
from refkernels.metrology import special_values as flag
from refkernels.metrology.elements import compare, floor_log2, times_power
from refkernels.metrology.ulp_errors import CHUNK, columns, flat, widened

_LOWEST = -6  # errors below 2^-6 ulp share the first bin
_SUB = 16  # bins per octave
_BINS = 64 * _SUB
_FLAGS = 13
_NOT_CORRECT, _BEYOND, _USUAL_COUNT = _FLAGS, _FLAGS + 1, _FLAGS + 2
_COUNTERS = _FLAGS + 3
_USUAL = flag.COMPARED | flag.CORRECT | flag.FAITHFUL  # counted at once: nearly every element
# Places in a chunk's maxima: |error|, uncertainty, absolute, absolute at zero, ratio.
_ERROR, _UNCERTAINTY, _ABSOLUTE, _AT_ZERO, _RATIO = range(5)


@dataclass(frozen=True)
class Summary:
    """The figures of one output. `worst_*` are flat (C order) indices, None where there is none."""

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


def summarise(
    got: npt.NDArray[Any],
    reference: Enclosure,
    bound: npt.NDArray[np.float64] | None = None,
    format: Format | None = None,
) -> Summary:
    """The Summary of got against reference and bound (None: infinite, but no overflow allowed).

    An element exceeds its bound only where it certainly does: |got - z| - radius > bound.
    Where the bound is infinite, an overflow inside is allowed: a NaN or infinity is no mismatch
    and no ULP figure, but is counted among the overflows. So is the NaN that a streaming mean makes
    of a row with an infinity, whose mean is infinite.
    """
    target = formats.of(got) if format is None else format
    limit = flat(_shaped(math.nan if bound is None else bound, reference.shape))
    chunks = -(-reference.size // CHUNK)
    sizes = np.empty(reference.size)
    kept = (
        sizes,
        np.zeros((chunks, _COUNTERS), np.int64),
        np.zeros((chunks, 5)),
        np.full((chunks, 3), -1, np.int64),
        np.zeros(chunks),
        np.zeros(chunks, np.uint64),
        np.zeros((chunks, _BINS), np.int32),
    )
    limits = (target.p, target.emin, target.emax)
    run = _tally if chunks > 1 else _tally_alone
    if chunks:
        run(widened(got), *columns(reference), limit, limits, kept)
    return _combine(reference.size, *kept)


def _shaped(bound: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    return np.broadcast_to(np.asarray(bound, dtype=np.float64), shape)


@njit(parallel=True)
def _tally(
    got: Any, hi: Any, lo: Any, radius: Any, scale: Any, bound: Any, format: Any, kept: Any
) -> None:
    """Every chunk by itself, in parallel; `kept` holds what a chunk writes into."""
    for chunk in prange(kept[1].shape[0]):
        _tally_chunk(chunk, got, hi, lo, radius, scale, bound, format, kept)


@njit
def _tally_alone(
    got: Any, hi: Any, lo: Any, radius: Any, scale: Any, bound: Any, format: Any, kept: Any
) -> None:
    """One chunk, without the threads: starting them costs more than a small array does."""
    _tally_chunk(0, got, hi, lo, radius, scale, bound, format, kept)


@njit
def _tally_chunk(
    chunk: int,
    got: Any,
    hi: Any,
    lo: Any,
    radius: Any,
    scale: Any,
    bound: Any,
    format: Any,
    kept: Any,
) -> None:
    sizes, counts, maxima, places, sums, distances, bins = kept
    p, emin, emax = format
    step_lo, step_radius, step_scale = lo.size > 1, radius.size > 1, scale.size > 1
    step_bound = bound.size > 1
    # Views taken once: each one costs an atomic reference count.
    count, maximum, place, filled = counts[chunk], maxima[chunk], places[chunk], bins[chunk]
    total, furthest = 0.0, np.uint64(0)
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, hi.size)):
        g = np.float64(got[i])
        r, s = radius[i * step_radius], scale[i * step_scale]
        element = compare(g, hi[i], lo[i * step_lo], r, s, p, emin, emax)
        size = _count(i, g, element, bound[i * step_bound], hi[i], count, maximum, place)
        sizes[i] = size
        if size >= 0.0:
            total += size
            furthest = max(furthest, element[5])
            filled[_bin(size)] += 1
    sums[chunk] = total
    distances[chunk] = furthest


@njit
def _count(
    i: int, g: float, element: Any, bound: float, hi: float, counts: Any, maxima: Any, places: Any
) -> float:
    """Tallies one element; its |error|, or NaN where it takes no part in the ULP figures."""
    flags, error, uncertainty, absolute, certain, _ = element
    allowed = bound == math.inf and not math.isnan(hi) and not math.isfinite(g)
    if flags & flag.STRAY_NAN != 0:
        flags |= flag.OVERFLOW if allowed else flag.SPECIAL_MISMATCH
    elif allowed and flags & flag.SPECIAL_MISMATCH != 0:
        flags ^= flag.SPECIAL_MISMATCH | flag.OVERFLOW
    elif allowed and flags & flag.OVERFLOW != 0:
        flags &= ~(flag.COMPARED | flag.SIGN_CHANGE | flag.UNDECIDED)
    if flags == _USUAL:
        counts[_USUAL_COUNT] += 1
    else:
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
    if places[0] < 0 or size > maxima[_ERROR]:
        maxima[_ERROR] = size
        places[0] = i
    return size


@njit
def _judge_absolute(
    i: int,
    flags: int,
    absolute: float,
    certain: float,
    bound: float,
    counts: Any,
    maxima: Any,
    places: Any,
) -> None:
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
    if places[1] < 0 or ratio > maxima[_RATIO]:
        maxima[_RATIO] = ratio
        places[1] = i


@njit
def _bin(size: float) -> int:
    """16 bins to the octave from 2^-6 on; what is below or beyond shares the first or the last."""
    if size < 2.0**_LOWEST:
        return 0
    if not size < 2.0**57:
        return _BINS - 1
    exponent = floor_log2(size)
    return (exponent - _LOWEST) * _SUB + int((times_power(size, -exponent) - 1.0) * _SUB) + 1


def _combine(
    elements: int,
    sizes: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int64],
    maxima: npt.NDArray[np.float64],
    places: npt.NDArray[np.int64],
    sums: npt.NDArray[np.float64],
    distances: npt.NDArray[np.uint64],
    bins: npt.NDArray[np.int32],
) -> Summary:
    totals = counts.sum(axis=0)
    named = {
        name: int(totals[bit.bit_length() - 1]) + int(totals[_USUAL_COUNT]) * bool(bit & _USUAL)
        for name, bit in flag.COUNTED.items()
    }
    named["elements"] = elements
    named["not_correctly_rounded"] = int(totals[_NOT_CORRECT])
    named["beyond_bound"] = int(totals[_BEYOND])
    compared = named["compared"]
    tops = maxima.max(axis=0, initial=0.0)
    filled = bins.sum(axis=0, dtype=np.int64)
    return Summary(
        counts=named,
        max=float(tops[_ERROR]),
        max_uncertainty=float(tops[_UNCERTAINTY]),
        mean=math.fsum(sums) / compared if compared else math.nan,
        percentiles=_percentiles(sizes, filled, compared),
        max_distance=int(distances.max(initial=np.uint64(0))),
        histogram=_histogram(sizes, filled),
        max_abs=float(tops[_ABSOLUTE]),
        max_abs_at_zero=float(tops[_AT_ZERO]),
        max_ratio=float(tops[_RATIO]),
        worst_error=_place(maxima[:, _ERROR], places[:, 0]),
        worst_ratio=_place(maxima[:, _RATIO], places[:, 1]),
        first_mismatch=next((int(i) for i in places[:, 2] if i >= 0), None),
    )


def _place(values: npt.NDArray[np.float64], places: npt.NDArray[np.int64]) -> int | None:
    """The place of the first largest value among the chunks that have one."""
    having = np.flatnonzero(places >= 0)
    return int(places[having[np.argmax(values[having])]]) if having.size else None


def _percentiles(
    sizes: npt.NDArray[np.float64], filled: npt.NDArray[np.int64], compared: int
) -> dict[str, float]:
    """Exact nearest-rank percentiles: the smallest error that so large a share does not exceed."""
    if not compared:
        return {}
    upto = np.cumsum(filled)
    found = {}
    for name, thousandths in (("p50", 500), ("p99", 990), ("p999", 999)):
        rank = -(-thousandths * compared // 1000) - 1
        k = int(np.searchsorted(upto, rank, side="right"))
        within = _members(sizes, k, int(filled[k]))
        place = rank - int(upto[k] - filled[k])
        found[name] = float(np.partition(within, place)[place])
    return found


@njit
def _members(sizes: Any, k: int, number: int) -> Any:
    """The errors of bin k."""
    members = np.empty(number)
    found = 0
    for size in sizes:
        if size >= 0.0 and _bin(size) == k:
            members[found] = size
            found += 1
    return members


def _histogram(
    sizes: npt.NDArray[np.float64], filled: npt.NDArray[np.int64]
) -> list[tuple[float, int]]:
    """(lower edge, count) of the octaves [2^k, 2^(k+1)) that hold an error; 0 for those below 2^-6.

    The last bin of the pass holds everything from 2^57 on: its members are told apart here.
    """
    octaves = {0.0: int(filled[0])}
    # Bin 1 starts at 2^-6; the very last bin is the open one.
    for k in np.flatnonzero(filled[1:-1]):
        edge = math.ldexp(1.0, int(k) // _SUB + _LOWEST)
        octaves[edge] = octaves.get(edge, 0) + int(filled[k + 1])
    if filled[-1]:
        members = _members(sizes, _BINS - 1, int(filled[-1]))
        for size in members:
            edge = math.ldexp(1.0, math.frexp(size)[1] - 1) if math.isfinite(size) else math.inf
            octaves[edge] = octaves.get(edge, 0) + 1
    return [(edge, number) for edge, number in sorted(octaves.items()) if number]
