"""The summary of an output by what is permitted besides a bound: see `range_limits`.

Two counts of elements are added. `range_limited`: outside the bound, but what a named form gives
where an intermediate result overflows or underflows. `ill_conditioned`: inside the bound, but off
by more than an eighth of the element's scale.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.metrology.summary import Summary, summarise
from refkernels.range_limits import VAGUE, RangeLimits, doubtful_error

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def permitted(
    output: str,
    got: npt.NDArray[Any],
    reference: Enclosure,
    bound: Doubles,
    format: Format,
    limits: RangeLimits | None,
    distribution: bool = True,
) -> tuple[Summary, Bools]:
    """The summary, and the range-limited elements; `limits`: None where nothing is known but the
    bound. `distribution`: as for `summarise`."""
    summary = summarise(got, reference, bound, format, distribution)
    out_of_range = np.zeros(got.shape, np.bool_)
    counts = summary.counts
    wrong = counts["beyond_bound"] or counts["special_value_mismatches"]
    unbounded = counts["not_correctly_rounded"] and np.isinf(bound).any()
    if limits is not None and (wrong or counts["overflows"] or unbounded):
        out_of_range = beyond(got, reference, bound, format)
        if out_of_range.any():
            out_of_range = limits.reached(output, got, bound, out_of_range)
        if out_of_range.any():
            allowed = np.where(out_of_range, np.inf, bound)
            summary = summarise(got, reference, allowed, format, distribution)
    undecided = 0
    if limits is not None and any(counts[name] for name in ("not_correctly_rounded", "overflows")):
        inside = ~out_of_range & (np.isinf(bound) | ~beyond(got, reference, bound, format))
        undecided = _doubtful(summary, output, got, reference, inside, format, limits)
    added = {"range_limited": int(np.count_nonzero(out_of_range)), "ill_conditioned": undecided}
    return replace(summary, counts={**summary.counts, **added}), out_of_range


def _errors(got: npt.NDArray[Any], exact: Enclosure, format: Format) -> Doubles:
    """What of |got - z| the radius cannot explain; 0 where z rounds to got's infinity, or is not a
    finite number; NaN where got is."""
    with np.errstate(all="ignore"):
        factor = np.ldexp(1.0, np.clip(exact.scale, -1100, 1023).astype(np.int32))
        wide, middle = to_float64(got), exact.hi * factor
        error = np.abs((wide - middle) - exact.lo * factor) - exact.radius * factor
        right = np.isinf(wide) & (np.sign(wide) == np.sign(middle)) & (np.abs(middle) > format.max)
        unknown = right | ~np.isfinite(exact.hi) | np.isinf(exact.radius)
    return np.asarray(np.where(unknown, 0.0, error))


def beyond(got: npt.NDArray[Any], exact: Enclosure, bound: Doubles, format: Format) -> Bools:
    """Outside the bound; a NaN or infinity that is wrong is outside every one."""
    error = _errors(got, exact, format)
    return np.asarray(~(error <= bound) | np.isinf(error))


def _doubtful(
    summary: Summary,
    output: str,
    got: npt.NDArray[Any],
    exact: Enclosure,
    inside: Bools,
    format: Format,
    limits: RangeLimits,
) -> int:
    """How many elements inside the bound have a doubtful error."""
    flat = exact.hi.reshape(-1)
    with np.errstate(all="ignore"):
        rms = np.sqrt(np.dot(flat, flat) / max(flat.size, 1))
    usual = not (np.any(exact.scale) or summary.counts["overflows"])
    if usual and summary.max_abs <= VAGUE * rms:
        return 0
    least = doubtful_error(exact, format)
    if least is None:
        if limits.regular(output):
            return 0
        least = np.zeros(got.shape)
    with np.errstate(invalid="ignore"):
        doubtful = ~(_errors(got, exact, format) <= least) & ~np.isnan(least)
        return int(np.count_nonzero(doubtful & inside))
