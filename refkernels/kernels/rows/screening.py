"""A quick test for elements hi ± radius, one radius a row, that a question may leave open.

It runs while the row is still in the cache, and never passes an open element. Elements that it does
not pass go to the exact test, `Question.undecided`."""

from typing import Any

import numpy as np

from refkernels.arithmetic.bits import OUTWARD, bits_of
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.question import Question

Screen = tuple[int, int, float, float, float]
_KINDS = ("enclosure", "rounding", "ulp")


def screen_of(question: Question) -> Screen:
    """The arguments of `doubtful` for a question about a format of at most 24 bits."""
    format = question.format
    # clear of the format's subnormals, of overflow, and far from float64's own limits
    return (
        _KINDS.index(question.kind),
        format.p,
        2.0 ** max(format.emin + 1, -900),
        2.0 ** min(format.emax, 900),
        question.uncertainty * format.u * (1.0 - 2.0**-50),
    )


@njit
def doubtful(hi: Any, radius: float, screen: Screen) -> int:
    """How many elements of a row may stay open.

    Rounding: half a unit of the format's last place is added to the bits of both ends, taken
    outwards by more than their own rounding (`bits.OUTWARD`), and cut off: the same result
    on both sides means that no midpoint lies between. Width: z has an ulp above 2^-p |z|, so
    that a radius of at most uncertainty 2^-p (|hi| - radius) is narrow enough.
    """
    kind, p, least, most, narrow = screen
    count = 0
    if kind == 0 or radius == 0.0:
        return count
    if kind == 2:
        for j in range(hi.size):
            count += not radius <= narrow * (abs(hi[j]) - radius)
        return count
    half, mask = np.int64(1) << (52 - p), ~((np.int64(1) << (53 - p)) - 1)
    for j in range(hi.size):
        h = abs(hi[j])
        low = bits_of(h - radius) + (half - OUTWARD)
        high = bits_of(h + radius) + (half + OUTWARD)
        count += not ((h > least) & (h < most) & (((low ^ high) & mask) == 0))
    return count
