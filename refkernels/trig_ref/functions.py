"""The trigonometric functions as `Function` records, and by their names."""

import math
from functools import partial
from typing import Any

import numpy as np

from refkernels.elementwise.function import Function
from refkernels.kernels import answers
from refkernels.kernels.functions import FUNCTIONS as KNOWN
from refkernels.kernels.real_function import Doubles
from refkernels.trig_ref import forms, inverse_cases
from refkernels.trig_ref.cases import cases_of
from refkernels.trig_ref.invariants import INVARIANTS


def _tangent(x: Doubles) -> Doubles:
    return np.asarray(answers.values(KNOWN["tan"], x))


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
    return tuple(np.asarray(answers.values(KNOWN[f], x)) for f in ("sinpi", "cospi"))  # type: ignore


def _cotangent(x: Doubles) -> Doubles:
    """|pi x cot(pi x)|, 1 at 0."""
    s, c = _quotient(x)
    return np.where(x == 0.0, 1.0, np.abs(math.pi * (x / s) * c))


def _tangent_of_turns(x: Doubles) -> Doubles:
    """|pi x tan(pi x)|."""
    s, c = _quotient(x)
    return np.abs(math.pi * (x / c) * s)


# name: the condition numbers of f and of f'.
_CONDITIONS: dict[str, tuple[Any, Any]] = {
    "sin": (_inverse, _direct),
    "cos": (_direct, _inverse),
    "tan": (_both, _twice),
    "asin": (partial(_condition, np.arcsin), _slope_condition),
    "acos": (partial(_condition, np.arccos), _slope_condition),
    "atan": (_atan_condition, _atan_slope_condition),
    "sinpi": (_cotangent, _tangent_of_turns),
    "cospi": (_tangent_of_turns, _cotangent),
}


def _function(name: str, condition: Any, slope_condition: Any) -> Function:
    return Function(
        **vars(KNOWN[name]),
        condition=condition,
        slope_condition=slope_condition,
        cases=partial(cases_of if name in ("sin", "cos", "tan") else inverse_cases.cases_of, name),
        invariants=INVARIANTS[name],
        slope_forms=forms.SLOPE_FORMS[name],
        primitives=forms.PRIMITIVES,
        truth=forms.TRUTHS.get(name),
        gradient=forms.GRADIENTS.get(name),
        domain=(-1.0, 1.0) if name in ("asin", "acos") else (-math.inf, math.inf),
    )


FUNCTIONS = tuple(_function(name, *both) for name, both in _CONDITIONS.items())
