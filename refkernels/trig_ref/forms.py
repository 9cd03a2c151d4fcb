"""The forms of dy f'(x) for the trigonometric functions: formulas in `xp`, as in
`elementary_ref.forms`. y is the forward pass's result. `either` marks where kernels differ only in
the order of operations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.arithmetic.filling import filled
from refkernels.elementwise.function import Form
from refkernels.elementwise.running import Primitive
from refkernels.kernels.trigonometric import turns, values
from refkernels.kernels.trigonometric.tables import PIO2_HIGH, PIO2_LOW
from refkernels.kernels.trigonometric.values import COS, SIN, TAN

PI = 2 * (Fraction(PIO2_HIGH) + Fraction(PIO2_LOW))


PRIMITIVES = {
    "sin": Primitive(filled(values.value, SIN), np.sin),
    "cos": Primitive(filled(values.value, COS), np.cos),
    "tan": Primitive(filled(values.value, TAN), np.tan),
    "sinpi": Primitive(filled(turns.value, SIN)),
    "cospi": Primitive(filled(turns.value, COS)),
}


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
