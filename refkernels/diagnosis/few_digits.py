"""Numbers of few digits, in an interval that rarely has one by chance: somebody chose them."""

from __future__ import annotations

import math

MOST = 3  # digits of a number that was chosen by hand


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
