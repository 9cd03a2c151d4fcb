"""Gradients of functions of one or two variables by formulas that lose digits somewhere: 1 - y of a
rounded y, 1 - x² near 1, e^(-x²), whose rounded argument is magnified, and x³ or dy x, which leave
the format's range early.

A formula is recognised by its bits where y and the functions are correctly rounded, or by its
errors where these match the kernel's to a quarter of their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from refkernels.binary_ref.formulas import hypot
from refkernels.diagnosis import evidence
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.ops.formula import Formula

_FROM_RESULT, _SQUARE, _EXPONENT = "slope_from_result", "one_minus_square", "rounded_exponent"
_CUBE = "cubed_argument"


def _from_result(function: str, slope: Callable[[Any], Any]) -> Formula:
    """Of the function's result as a library stores it, correctly rounded."""

    def gradient(xp: Any, dy: Any, x: Any) -> Any:
        return dy * slope(xp.store(xp.library(lambda xp, x: xp.function(function, x), 4, (x,))))

    return gradient


def _gaussian(sign: float) -> Formula:
    factor = sign * 2.0 / math.sqrt(math.pi)
    return lambda xp, dy, x: dy * (xp.number(factor) * xp.exp(-(x * x)))


def _over_hypot(xp: Any, dy: Any, a: Any, b: Any, **prepared: Any) -> Any:
    y = xp.store(hypot(xp, a, b, **prepared))
    return (dy * a) / y, (dy * b) / y


GRADIENTS: dict[str, tuple[str, str, Formula]] = {
    "sigmoid": (_FROM_RESULT, "dy (1 - y) y", _from_result("sigmoid", lambda y: (1 - y) * y)),
    "tanh": (_FROM_RESULT, "dy (1 - y²)", _from_result("tanh", lambda y: 1 - y * y)),
    "expm1": (_FROM_RESULT, "dy (y + 1)", _from_result("expm1", lambda y: y + 1)),
    "asin": (_SQUARE, "dy / √(1 - x²)", lambda xp, dy, x: dy * (1 / xp.sqrt(1 - x * x))),
    "acos": (_SQUARE, "-dy / √(1 - x²)", lambda xp, dy, x: dy * (-1 / xp.sqrt(1 - x * x))),
    "erf": (_EXPONENT, "dy 2 / √π e^(-x²)", _gaussian(1.0)),
    "erfc": (_EXPONENT, "-dy 2 / √π e^(-x²)", _gaussian(-1.0)),
    "rsqrt": (_CUBE, "-dy / (2 √(x³))", lambda xp, dy, x: dy * (-1 / (2 * xp.sqrt(x * x * x)))),
    "hypot": ("product_before_quotient", "(dy x) / y", _over_hypot),
}


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> list[Claim]:
    """The op's formula, for a gradient that is not ordinary."""
    cause, formula, gradient = GRADIENTS[problem.op.name]
    family = []
    for name, got in outputs.items() if problem.direction == "backward" else ():
        for arithmetic in ("", "composed") if not fits[name].ordinary else ():
            bits = problem.computed(gradient, arithmetic)[name]
            model = f"{formula} {arithmetic}".rstrip()
            claim = Claim(cause, name, Prediction(bits=bits), {"formula": formula}, model)
            trial = evidence.tried(claim, fits[name], got)
            family.append(evidence.by_bits_or_errors(problem, trial, fits[name], got))
    return evidence.nearest(family, beside_fits=False)
