"""The forms of dy f'(x) for the trigonometric functions: formulas in `xp`, as in
`elementary_ref.forms`. y is the forward pass's result. `either` marks where kernels differ only in
the order of operations."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from refkernels.elementwise.function import Form
from refkernels.elementwise.running import Primitive
from refkernels.kernels import answers
from refkernels.kernels.functions import FUNCTIONS, HALF
from refkernels.kernels.trigonometric.tables import PIO2_HIGH, PIO2_LOW

PI = 2 * (Fraction(PIO2_HIGH) + Fraction(PIO2_LOW))

PRIMITIVES = {
    name: Primitive(partial(answers.values, FUNCTIONS[name]), getattr(np, name, None))
    for name in ("sin", "cos", "tan", "sinpi", "cospi")
}


def _sine_of_turns(xp: Any, x: Any, quarters: int = 0) -> Any:
    """sin(pi x), or cos(pi x) a quarter later, with its exact zeros: 2 x = n + f, |f| <= 1/2; n and
    its half are halved by exact steps."""
    half, twice = xp.number(HALF), xp.quotient(x, xp.number(HALF))

    def halved(n: Any) -> tuple[Any, Any]:
        q = xp.round(xp.quotient(n, xp.number(2)))
        return q, xp.round(n - xp.quotient(q, half))

    n = xp.round(twice)
    angle, (q, odd) = xp.pi() * (twice - n) * half, halved(n)  # q is even where n is odd
    s, c = xp.sin(angle), xp.cos(angle)
    s, c = (c, -s) if quarters else (s, c)
    return odd * c + (1 - abs(odd)) * (1 - 2 * abs(halved(q)[1])) * s


_cosine_of_turns = partial(_sine_of_turns, quarters=1)
TRUTHS: dict[str, Any] = {"sinpi": _sine_of_turns, "cospi": _cosine_of_turns}
GRADIENTS: dict[str, Any] = {
    "tan": lambda xp, dy, x: dy * (1 + xp.square(xp.function("tan", x))),
    "asin": lambda xp, dy, x: dy / xp.sqrt((1 - x) * (1 + x)),
    "acos": lambda xp, dy, x: -dy / xp.sqrt((1 - x) * (1 + x)),
    "atan": lambda xp, dy, x: dy / (1 + xp.square(x)),
    "sinpi": lambda xp, dy, x: dy * xp.pi() * _cosine_of_turns(xp, x),
    "cospi": lambda xp, dy, x: -dy * xp.pi() * _sine_of_turns(xp, x),
}
"""The certified formulas, where the definition and its derivative lose digits or zeros."""


def _times(name: str, sign: int) -> Any:
    return lambda xp, dy, x: dy * xp.store(sign * xp.function(name, x))


def _tan(xp: Any, dy: Any, x: Any) -> Any:
    y = xp.store(xp.function("tan", x))
    return dy * xp.store(1 + xp.store(xp.square(y)))


def _secant(xp: Any, dy: Any, x: Any) -> Any:
    c = xp.store(xp.function("cos", x))
    square, inverse = xp.store(xp.square(c)), xp.store(1 / c)
    slope = xp.either(xp.store(1 / square), xp.store(xp.square(inverse)))
    return xp.either(dy / square, dy * slope)


def _arc(sign: int) -> Any:
    """1 - x^2 also as (1 - x) (1 + x); the root's reciprocal too."""

    def formula(xp: Any, dy: Any, x: Any) -> Any:
        square = xp.either(1 - xp.store(x * x), xp.store(1 - x) * xp.store(1 + x))
        root = xp.store(xp.sqrt(xp.store(square)))
        return xp.either(sign * dy / root, sign * dy * xp.store(1 / root))

    return formula


def _atan(xp: Any, dy: Any, x: Any) -> Any:
    below = xp.store(1 + xp.store(x * x))
    return xp.either(dy / below, dy * xp.store(1 / below))


def _turn(name: str, sign: int) -> Any:
    def formula(xp: Any, dy: Any, x: Any) -> Any:
        c, pi = xp.store(sign * xp.function(name, x)), xp.number(PI)
        ways = xp.either(xp.store(dy * pi) * c, xp.store(dy * c) * pi)
        return xp.either(ways, dy * xp.store(pi * c))

    return formula


SLOPE_FORMS: dict[str, tuple[Form, ...]] = {
    "sin": (Form("dy cos(x)", _times("cos", 1)),),
    "cos": (Form("-dy sin(x)", _times("sin", -1)),),
    "tan": (Form("dy (1 + y^2)", _tan), Form("dy / cos(x)^2", _secant)),
    "asin": (Form("dy / sqrt(1 - x^2)", _arc(1)),),
    "acos": (Form("-dy / sqrt(1 - x^2)", _arc(-1)),),
    "atan": (Form("dy / (1 + x^2)", _atan),),
    "sinpi": (Form("dy pi cos(pi x)", _turn("cospi", 1)),),
    "cospi": (Form("-dy pi sin(pi x)", _turn("sinpi", -1)),),
}
