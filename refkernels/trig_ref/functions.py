"""The trigonometric functions as `Function` records, and by their names."""

import math
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.filling import filled
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Doubles, Function
from refkernels.kernels.trigonometric import float64, inverse, inverse_float64, turns, values
from refkernels.trig_ref import exact, forms, inverse_cases
from refkernels.trig_ref.cases import cases_of
from refkernels.trig_ref.definitions import DEFINITIONS
from refkernels.trig_ref.invariants import INVARIANTS

_ARC_FAST = inverse_float64.FAST


def _tangent(x: Doubles) -> Doubles:
    return np.asarray(oracle.values(_BY_NAME["tan"], x))


def _inverse(x: Doubles) -> Doubles:
    """|x cot x|, 1 at 0."""
    return np.where(x == 0.0, 1.0, np.abs(x / _tangent(x)))


def _direct(x: Doubles) -> Doubles:
    """|x tan x|."""
    return np.abs(x * _tangent(x))


def _both(x: Doubles) -> Doubles:
    """|2 x / sin 2x| = |x cot x| + |x tan x|."""
    return _inverse(x) + _direct(x)


def _twice(x: Doubles) -> Doubles:
    """|2 x tan x|."""
    return 2.0 * _direct(x)


def _squared_cosine(x: Doubles) -> Doubles:
    return (1.0 - x) * (1.0 + x)


def _condition(of: Any, x: Doubles) -> Doubles:
    """|x f'(x) / f(x)| with f' = ±(1 - x^2)^(-1/2); asin's is 1 at 0."""
    ratio = np.abs(x / (np.sqrt(_squared_cosine(x)) * of(x)))
    return np.where((x == 0.0) & (of is np.arcsin), 1.0, ratio)


def _slope_condition(x: Doubles) -> Doubles:
    """x^2 / (1 - x^2)."""
    return np.where(np.abs(x) > 1.0, np.nan, x * x / _squared_cosine(x))


def _atan_condition(x: Doubles) -> Doubles:
    """|x / ((1 + x^2) atan x)|."""
    return np.where(x == 0.0, 1.0, np.abs(1.0 / ((1.0 / x + x) * np.arctan(x))))


def _atan_slope_condition(x: Doubles) -> Doubles:
    """2 x^2 / (1 + x^2)."""
    return 2.0 / (1.0 + (1.0 / x) ** 2)


def _quotient(x: Doubles) -> tuple[Doubles, Doubles]:
    return tuple(np.asarray(oracle.values(f, x)) for f in map(_BY_NAME.get, ("sinpi", "cospi")))  # type: ignore


def _cotangent(x: Doubles) -> Doubles:
    """|pi x cot(pi x)|, 1 at 0."""
    s, c = _quotient(x)
    return np.where(x == 0.0, 1.0, np.abs(math.pi * (x / s) * c))


def _tangent_of_turns(x: Doubles) -> Doubles:
    """|pi x tan(pi x)|."""
    s, c = _quotient(x)
    return np.abs(math.pi * (x / c) * s)


# name: the kernels, their code of f, the float64 tier, the condition numbers of f and of f'.
_KERNELS: dict[str, tuple[Any, int, Any, Any, Any]] = {
    "sin": (values, values.SIN, float64.FAST, _inverse, _direct),
    "cos": (values, values.COS, float64.FAST, _direct, _inverse),
    "tan": (values, values.TAN, float64.FAST, _both, _twice),
    "asin": (inverse, inverse.ASIN, _ARC_FAST, partial(_condition, np.arcsin), _slope_condition),
    "acos": (inverse, inverse.ACOS, _ARC_FAST, partial(_condition, np.arccos), _slope_condition),
    "atan": (inverse, inverse.ATAN, _ARC_FAST, _atan_condition, _atan_slope_condition),
    "sinpi": (turns, values.SIN, turns.FAST, _cotangent, _tangent_of_turns),
    "cospi": (turns, values.COS, turns.FAST, _tangent_of_turns, _cotangent),
}


def _function(name: str) -> Function:
    kernels, code, fast, condition, slope_condition = _KERNELS[name]
    return Function(
        name=name,
        fast=fast[name],
        values=filled(kernels.value, code),
        slopes=filled(kernels.slope, code),
        exact_value=exact.ball(name),
        exact_slope=exact.ball(f"{name}'"),
        exact_gradient=exact.atan_gradient if name == "atan" else None,
        condition=condition,
        slope_condition=slope_condition,
        cases=partial(cases_of if fast is float64.FAST else inverse_cases.cases_of, name),
        invariants=INVARIANTS[name],
        slope_forms=forms.SLOPE_FORMS[name],
        primitives=forms.PRIMITIVES,
        definition=DEFINITIONS.get(name),
    )


FUNCTIONS = tuple(_function(name) for name in _KERNELS)
_BY_NAME = {function.name: function for function in FUNCTIONS}
