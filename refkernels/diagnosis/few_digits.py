"""Numbers of few digits, in an interval that rarely has one by chance: somebody chose them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

MOST = 3  # digits of a number that was chosen by hand
_CHANCE = 2.0**-7  # the largest probability that an interval has such a number by chance
PRICE = math.log2(10.0)  # bits of a digit; the exponent is worth two more
_DOUBLINGS, _HALVINGS = 48, 12  # of the distance to an end of an interval


def told(
    low: float, best: float, high: float, asked: float, usual: Collection[float] = ()
) -> tuple[float, dict[str, bool], float]:
    """A value between low and high, what is known of it, and the bits that it costs: the choice
    among usual values, of digits and an exponent, or of intervals as wide. {}: it is named, as the
    only usual value there, or else a number of few digits; {"several": True}: of several usual
    ones; {"fitted": True}: none is there, so that the interval may be chance.
    """
    known = [value for value in usual if low <= value <= high]
    if known:
        value = known[0] if len(known) == 1 else min(known, key=lambda value: abs(value - best))
        return value, {"several": True} if known[1:] else {}, math.log2(len(usual))
    width = high - low
    if low <= 0.0 <= high and width <= 2.0 * _CHANCE * abs(asked):
        return 0.0, {}, 2.0 * PRICE
    sign, (least, most) = math.copysign(1.0, low), sorted((abs(low), abs(high)))
    if low * high > 0.0 and (short := chosen(least, most, _CHANCE)):
        return sign * short[0], {}, PRICE * (short[1] + 2)
    value = sign * float(shortest(abs(best), least, most)) if low * high > 0.0 else best
    places = abs(best) / width if width > 0.0 else 1.0
    return value, {"fitted": True}, 2.0 * PRICE + math.log2(max(1.0, places))


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
