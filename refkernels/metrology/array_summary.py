"""The NumPy fallback of `summary`'s pass: the same figures, for a small array.

Every element is judged by `array_elements.compare`, percentiles come from the sorted errors, and
errors are added in the kernel's order. See `arithmetic.small` for when a fallback is used.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.array_decisions import Format, columns
from refkernels.metrology import special_values as flag
from refkernels.metrology.array_elements import compare

Array = npt.NDArray[Any]
LANES = 8
RANKS = (("p50", 500), ("p99", 990), ("p999", 999))  # in thousandths
FINEST = 2.0**-6
"""Errors below it, in ulp, share the histogram's first bin."""


def figures(parts: Sequence[Array], bound: Array, format: Format) -> tuple[Any, ...]:
    """The fields of a `Summary`, in order, from what `compare` takes and the bound."""
    got, hi = parts[:2]
    (bound,) = columns(hi, bound)
    elements = compare(parts, format)
    with np.errstate(all="ignore"):
        allowed = np.isposinf(bound) & ~np.isnan(hi) & ~np.isfinite(got)
        flags = _within_rules(elements.flags, allowed)
        judged = ~np.isnan(elements.absolute) & ~(allowed & (flags & flag.CORRECT == 0))
        certain, limited = elements.certain, judged & ~np.isnan(bound)
        ratios = np.where((certain > 0.0) & ~np.isposinf(bound), certain / bound, 0.0)
    compared = flags & flag.COMPARED != 0
    size = np.abs(elements.error)
    number = int(np.count_nonzero(compared))
    errors = np.sort(size[compared])
    zero = judged & (flags & flag.NONZERO_AT_ZERO != 0)
    return (
        _counts(flags, limited & (certain > bound)),
        _largest(size, compared),
        _largest(elements.uncertainty, compared),
        sum_in_lanes(np.where(compared, size, 0.0)) / number if number else math.nan,
        {name: float(errors[-(-share * number // 1000) - 1]) for name, share in RANKS if number},
        int(elements.distance[compared].max(initial=np.uint64(0))),
        _histogram(errors),
        _largest(elements.absolute, judged),
        _largest(elements.absolute, zero),
        _largest(ratios, limited),
        _first_largest(size, compared),
        _first_largest(ratios, limited),
        _first_largest(np.ones(hi.size), flags & flag.SPECIAL_MISMATCH != 0),
    )


def _within_rules(flags: Array, allowed: Array) -> Array:
    """The flags, where an intermediate overflow may be allowed: see `summary._count`."""
    stray = flags & flag.STRAY_NAN != 0
    mismatch = ~stray & allowed & (flags & flag.SPECIAL_MISMATCH != 0)
    overflow = ~stray & ~mismatch & allowed & (flags & flag.OVERFLOW != 0)
    flags = flags | np.where(stray, np.where(allowed, flag.OVERFLOW, flag.SPECIAL_MISMATCH), 0)
    flags = flags ^ np.where(mismatch, flag.SPECIAL_MISMATCH | flag.OVERFLOW, 0)
    uncounted = flag.COMPARED | flag.SIGN_CHANGE | flag.UNDECIDED
    return np.where(overflow, flags & ~uncounted, flags)


def _counts(flags: Array, beyond: Array) -> dict[str, int]:
    counts = {name: int(np.count_nonzero(flags & bit)) for name, bit in flag.COUNTED.items()}
    other_zero = flag.SIGNED_ZERO | flag.EXACT_ZERO
    right = (flags & (flag.CORRECT | flag.UNDECIDED) != 0) | (flags & other_zero == other_zero)
    return counts | {
        "elements": flags.size,
        "not_correctly_rounded": int(np.count_nonzero(~right)),
        "beyond_bound": int(np.count_nonzero(beyond)),
    }


def _largest(values: Array, where: Array) -> float:
    return float(np.fmax.reduce(values[where], initial=0.0))  # as the kernel: no NaN is largest


def _first_largest(values: Array, where: Array) -> int | None:
    """The first place of the largest value; None if there is none."""
    return int(np.argmax(np.where(where, values, -1.0))) if where.any() else None


def sum_in_lanes(sizes: Array) -> float:
    """`summary._add`: element e in lane e mod 8, then the lanes, each in order."""
    whole = sizes.size - sizes.size % LANES
    lanes = np.cumsum(sizes[:whole].reshape(-1, LANES), axis=0)[-1] if whole else np.zeros(LANES)
    lanes[0] = np.cumsum([lanes[0], *sizes[whole:]])[-1]
    return float(np.cumsum(lanes)[-1])


def _histogram(errors: Array) -> list[tuple[float, int]]:
    """(lower edge, count) of the octaves that hold an error: see `distribution.Errors`."""
    edges = np.ldexp(1.0, np.frexp(errors)[1] - 1)
    edges = np.where(np.isinf(errors), errors, np.where(errors < FINEST, 0.0, edges))
    values, counts = np.unique(edges, return_counts=True)
    return list(zip(values.tolist(), counts.tolist(), strict=True))
