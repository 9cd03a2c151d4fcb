"""The functions that are no primitives of formulas, in terms of those."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

HALF = Fraction(1, 2)


def _over_log(base: int) -> Callable[[Any, Any], Any]:
    return lambda xp, x: xp.log(x) / xp.log(xp.number(base))


def _gelu_tanh(xp: Any, x: Any) -> Any:
    cubic = x + xp.number(Fraction(44715, 10**6)) * xp.power(x, 3)
    return x * xp.number(HALF) * (1 + xp.tanh(xp.sqrt(2 / xp.pi()) * cubic))


DEFINITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "exp2": lambda xp, x: xp.exp(x * xp.log(xp.number(2))),
    "log2": _over_log(2),
    "log10": _over_log(10),
    "sinh": lambda xp, x: (xp.expm1(x) - xp.expm1(-x)) * xp.number(HALF),
    "cosh": lambda xp, x: (xp.exp(x) + xp.exp(-x)) * xp.number(HALF),
    "sigmoid": lambda xp, x: 1 / (1 + xp.exp(-x)),
    "silu": lambda xp, x: x / (1 + xp.exp(-x)),
    "softplus": lambda xp, x: xp.log1p(xp.exp(x)),
    "reciprocal": lambda xp, x: 1 / x,
    "gelu": lambda xp, x: x * xp.erfc(-x / xp.sqrt(xp.number(2))) * xp.number(HALF),
    "gelu_tanh": _gelu_tanh,
}
