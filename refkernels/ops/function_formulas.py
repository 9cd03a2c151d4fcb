"""The functions with an oracle of their own, as formulas."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from refkernels.op import Op
from refkernels.ops.formula_op import formulas_of
from refkernels.ops.formulas import Formulas

HALF = Fraction(1, 2)


def _function(name: str, xp: Any, x: Any) -> Any:
    return xp.function(name, x)


def _over_log(base: int) -> Callable[[Any, Any], Any]:
    return lambda xp, x: xp.log(x) / xp.log(xp.number(base))


def _asin(xp: Any, x: Any) -> Any:
    return xp.atan(x / xp.sqrt((1 - x) * (1 + x)))


def _gelu_tanh(xp: Any, x: Any) -> Any:
    cubic = x + xp.number(Fraction(44715, 10**6)) * xp.power(x, 3)
    return x * xp.number(HALF) * (1 + xp.tanh(xp.sqrt(2 / xp.pi()) * cubic))


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        name: functools.partial(_function, name)
        for name in (
            *("exp", "expm1", "log", "log1p", "tanh", "sqrt", "rsqrt", "erf", "erfc"),
            *("sin", "cos", "atan"),
        )
    },
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
    "tan": lambda xp, x: xp.sin(x) / xp.cos(x),
    "asin": _asin,
    "acos": lambda xp, x: xp.pi() * xp.number(HALF) - _asin(xp, x),
    "sinpi": lambda xp, x: xp.sin(xp.pi() * x),
    "cospi": lambda xp, x: xp.cos(xp.pi() * x),
}
"""By name."""


def definition(op: Op) -> Formulas:
    """The formulas of an op: its own or, of a function, the one above."""
    return op.definition or _of_function(op.name)


@functools.cache
def _of_function(name: str) -> Formulas:
    return formulas_of(name, "x[...] -> y[...]", forms={"formula": FUNCTIONS[name]})
