"""Numbers of few digits, in an interval that rarely has one by chance: somebody chose them."""

from __future__ import annotations

import math
from collections.abc import Callable

MOST = 3  # digits of a number that was chosen by hand
PRICE = math.log2(10.0)  # bits of a digit
_DOUBLINGS, _HALVINGS = 48, 12  # of the distance to an end of an interval


def end_of(fits: Callable[[float], bool], inside: float, step: float, limit: float) -> float:
    """The end of the interval of numbers that fit, from `inside` in the direction of `step`, to
    2^-12 of its distance: a number beyond it, the limit, or an infinity where all numbers fit."""
    outside = inside
    for _ in range(_DOUBLINGS):
        outside = min(inside + step, limit) if step > 0.0 else max(inside + step, limit)
        if outside == inside:
            return inside
        if not fits(outside):
            break
        inside, step = outside, 4.0 * step
    else:
        return math.copysign(math.inf, step)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2.0
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return outside


def chosen(low: float, high: float, chance: float) -> tuple[float, int] | None:
    """The positive number of fewest digits between low and high, and how many it has; None for more
    than three, or if an interval as wide holds one as short with more than this probability."""
    if not 0.0 < low <= high < math.inf:
        return None
    for digits in range(1, MOST + 1):
        spacing = 10.0 ** (math.floor(math.log10(high)) - digits + 1)
        number = float(f"{math.floor(high / spacing) * spacing:.{digits}g}")
        if low <= number <= high:
            return (number, digits) if high - low <= chance * spacing else None
    return None


def shortest(best: float, low: float, high: float) -> str:
    """The shortest decimal of a number that lies between low and high, so never more digits than
    these support."""
    texts = (f"{best:.{digits}g}" for digits in range(1, 18))
    return next((text for text in texts if low <= float(text) <= high), repr(best))
