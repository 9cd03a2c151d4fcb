"""Gradients of functions of one or two variables by formulas that lose digits somewhere: 1 - y of a
rounded y, 1 - x² near 1, e^(-x²), whose rounded argument is magnified, and x³ or dy x, which leave
the format's range early.

A formula is recognised by its bits where y and the functions are correctly rounded, or by its
errors where these match the kernel's to a quarter of their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import evidence
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.problem import Array, Arrays, Problem

Gradient = Callable[[Array, Array, Array], Array]  # of dy, x and y, in their format

_FROM_RESULT, _SQUARE, _EXPONENT = "slope_from_result", "one_minus_square", "rounded_exponent"
_CUBE, _PRODUCT = "cubed_argument", "product_before_quotient"


def _constant(x: Array, value: float) -> Array:
    return np.asarray(value).astype(x.dtype)


def _in_double(function: Callable[[Array], Array], x: Array) -> Array:
    """A function, computed in float64 and rounded to the format of x."""
    return function(to_float64(x)).astype(x.dtype)


def _gaussian(sign: float) -> Gradient:
    factor = sign * 2.0 / math.sqrt(math.pi)
    return lambda dy, x, y: dy * (_constant(x, factor) * _in_double(np.exp, -(x * x)))


def _rooted(sign: float) -> Gradient:
    return lambda dy, x, y: dy * (_constant(x, sign) / np.sqrt(_constant(x, 1.0) - x * x))


GRADIENTS: dict[str, tuple[str, dict[str, Gradient]]] = {
    "sigmoid": (
        _FROM_RESULT,
        {"dy (1 - y) y": lambda dy, x, y: dy * ((_constant(y, 1.0) - y) * y)},
    ),
    "tanh": (_FROM_RESULT, {"dy (1 - y²)": lambda dy, x, y: dy * (_constant(y, 1.0) - y * y)}),
    "expm1": (
        _FROM_RESULT,
        {
            "dy (y + 1)": lambda dy, x, y: dy * (y + _constant(y, 1.0)),
            "dy y + dy": lambda dy, x, y: dy * y + dy,
        },
    ),
    "asin": (_SQUARE, {"dy / √(1 - x²)": _rooted(1.0)}),
    "acos": (_SQUARE, {"-dy / √(1 - x²)": _rooted(-1.0)}),
    "erf": (_EXPONENT, {"dy 2 / √π e^(-x²)": _gaussian(1.0)}),
    "erfc": (_EXPONENT, {"-dy 2 / √π e^(-x²)": _gaussian(-1.0)}),
    "rsqrt": (
        _CUBE,
        {"-dy / (2 √(x³))": lambda dy, x, y: dy * (_constant(x, -0.5) / np.sqrt(x * x * x))},
    ),
    "hypot": (_PRODUCT, {"(dy x) / y": lambda dy, x, y: (dy * x) / y}),
}


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> list[Claim]:
    """The op's formulas, for a gradient that is not ordinary."""
    cause = GRADIENTS[problem.op.name][0]
    family = []
    for name, got in outputs.items():
        if problem.direction != "backward" or fits[name].ordinary:
            continue
        for formula, model, gradient in _computed(problem, name, got):
            prediction, details = Prediction(bits=gradient), {"formula": formula}
            claim = Claim(cause, name, prediction, details, f"{formula} {model}")
            trial = evidence.tried(claim, fits[name], got)
            family.append(evidence.by_bits_or_errors(problem, trial, fits[name], got))
    return evidence.nearest(family, beside_fits=False)


def _computed(problem: Problem, output: str, got: Array) -> Iterator[tuple[str, str, Array]]:
    """The gradient with every operation rounded to the problem's format or, where that has 16
    bits, to binary32: from the correctly rounded y, and from the plain algorithm's."""
    op, dy = problem.op, problem.inputs[problem.op.cotangent]
    narrow = problem.format.p < formats.BINARY32.p
    for format in (formats.BINARY32, problem.format) if narrow else (problem.format,):
        inputs = {x: formats.cast(problem.inputs[x], format) for x in op.takes("forward")}
        certify = "rounding", format
        truth = op.evaluate("forward", inputs, problem.params, certify)["y"]
        plain = op.plain("forward", inputs, problem.params, format)["y"]
        for name, y in (("correctly rounded", truth.round(format)[0]), ("plain", plain)):
            x = inputs[output.removeprefix("d")]
            arrays = (formats.cast(dy, format), x, formats.cast(y, format))
            for formula, gradient in GRADIENTS[op.name][1].items():
                with np.errstate(all="ignore"):
                    dx = formats.cast(gradient(*arrays), problem.format)
                if dx.shape == got.shape and dx.dtype == got.dtype:
                    yield formula, f"in {format.name}, y {name}", dx
