"""Fast, conservative looks at whole arrays: what range, and is the question answered already?

Both are passes of simple vector operations; what they cannot settle is looked at closely, element
by element, by `Question.undecided`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.question import Question

Floats = npt.NDArray[np.float64]

NOTHING, ULP, NARROW, DOUBLE = range(4)
_STEP = 512  # elements at a time, so that what a pass leaves is still in the cache
_SLACK = 2.0**-50  # covers the roundings of each of the formulas below


@dataclass(frozen=True)
class Screen:
    """A question as the numbers that `open_elements` compares with."""

    kind: int
    factor: float  # ULP: a lower bound of uncertainty * ulp(z) / |z|. NARROW: 2^(53-p) + 1
    lowest: float  # ULP: uncertainty times the smallest subnormal. NARROW: smallest normal number
    highest: float  # NARROW: the largest number

    @staticmethod
    def of(question: Question) -> "Screen":
        format = question.format
        if question.kind == "ulp":
            share = question.uncertainty * (1.0 - _SLACK)
            return Screen(ULP, share * format.u, share * format.min_subnormal, 0.0)
        if question.kind == "rounding" and format.p == 53:
            return Screen(DOUBLE, 0.0, 0.0, 0.0)
        if question.kind == "rounding":
            splitter = 2.0 ** (53 - format.p) + 1.0
            return Screen(NARROW, splitter, format.min_normal, format.max)
        return Screen(NOTHING, 0.0, 0.0, 0.0)


@njit(nogil=True)
def open_elements(
    kind: int, factor: float, lowest: float, highest: float, hi: Any, lo: Any, radius: Any
) -> Any:
    """The indices of the elements of flat arrays that are not certainly decided."""
    found = np.empty(hi.size, np.intp)
    count = 0
    for start in range(0, hi.size, _STEP):
        stop = min(start + _STEP, hi.size)
        count = append_open(
            kind, factor, lowest, highest, hi[start:stop], lo[start:stop], radius[start:stop],
            start, found, count,
        )  # fmt: skip
    return found[:count].copy()


@inner
def append_open(
    kind: int, factor: float, lowest: float, highest: float, hi: Any, lo: Any, radius: Any,
    start: int, found: Any, count: int,
) -> int:  # fmt: skip
    """Add start + n to found[:count] for every n whose interval is not certainly narrow enough.

    ULP: ulp(z) > u |z| and ulp(z) >= the smallest subnormal, at the interval's end nearest zero.
    NARROW, a rounding to p < 53 bits: Veltkamp's splitting rounds both ends of a slightly larger
    interval to p bits, to nearest, whatever it does with ties. Where both go to one number no
    midpoint lies between them, so every rounding to nearest agrees. Only between the format's
    smallest normal and largest numbers. Source: Boldo (2006), doi:10.1007/11814771_6.
    DOUBLE, a rounding to float64: both ends, the radius enlarged, round to hi.
    """
    if kind == NOTHING:
        return count
    mask = np.empty(hi.size, np.bool_)
    if kind == ULP:
        for n in range(hi.size):
            nearest = (abs(hi[n]) - (abs(lo[n]) + radius[n])) * (1.0 - _SLACK)
            mask[n] = (radius[n] <= nearest * factor) | (radius[n] <= lowest)
    elif kind == NARROW:
        for n in range(hi.size):
            spread = abs(lo[n]) + radius[n]
            inner = (abs(hi[n]) - spread) * (1.0 - _SLACK)
            outer = (abs(hi[n]) + spread) * (1.0 + _SLACK)
            inner_split, outer_split = factor * inner, factor * outer
            first = inner_split - (inner_split - inner)
            second = outer_split - (outer_split - outer)
            mask[n] = (first == second) & (inner >= lowest) & (outer <= highest)
    else:
        for n in range(hi.size):
            spread = radius[n] * (1.0 + _SLACK) + abs(lo[n]) * _SLACK
            below, above = hi[n] + (lo[n] - spread), hi[n] + (lo[n] + spread)
            mask[n] = (below == hi[n]) & (above == hi[n]) & (hi[n] != 0.0)
    every = True
    for n in range(mask.size):
        every &= mask[n]
    if not every:
        for n in range(mask.size):
            if not mask[n]:
                found[count] = start + n
                count += 1
    return count


@njit(nogil=True)
def magnitude_bits(bits: Any) -> Any:
    """Of float64 as uint64: the bits of the largest magnitude, and of the smallest nonzero one
    (less one; 2^64 - 1 where all are zeros)."""
    mask = np.uint64(0x7FFFFFFFFFFFFFFF)
    one = np.uint64(1)
    largest = np.uint64(0)
    smallest = ~np.uint64(0)
    for i in range(bits.size):
        magnitude = bits[i] & mask
        largest = max(largest, magnitude)
        smallest = min(smallest, magnitude - one)  # zero wraps to the largest of all
    return largest, smallest
