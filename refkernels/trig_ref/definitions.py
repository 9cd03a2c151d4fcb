"""The functions that are no primitives of formulas, in terms of those."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

HALF = Fraction(1, 2)


def _asin(xp: Any, x: Any) -> Any:
    return xp.atan(x / xp.sqrt((1 - x) * (1 + x)))


DEFINITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "tan": lambda xp, x: xp.sin(x) / xp.cos(x),
    "asin": _asin,
    "acos": lambda xp, x: xp.pi() * xp.number(HALF) - _asin(xp, x),
    "sinpi": lambda xp, x: xp.sin(xp.pi() * x),
    "cospi": lambda xp, x: xp.cos(xp.pi() * x),
}
