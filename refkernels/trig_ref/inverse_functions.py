"""asin, acos, atan, sinpi and cospi as `Function` records, and by their names."""

import math
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Doubles, Function
from refkernels.kernels.trigonometric import inverse, inverse_float64, turns
from refkernels.kernels.trigonometric.values import COS, SIN
from refkernels.trig_ref import exact, forms
from refkernels.trig_ref.definitions import DEFINITIONS
from refkernels.trig_ref.invariants import INVARIANTS
from refkernels.trig_ref.inverse_cases import cases_of


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
    return tuple(np.asarray(oracle.values(f, x)) for f in (_SINPI, _COSPI))  # type: ignore


def _cotangent(x: Doubles) -> Doubles:
    """|pi x cot(pi x)|, 1 at 0."""
    s, c = _quotient(x)
    return np.where(x == 0.0, 1.0, np.abs(math.pi * (x / s) * c))


def _tangent(x: Doubles) -> Doubles:
    """|pi x tan(pi x)|."""
    s, c = _quotient(x)
    return np.abs(math.pi * (x / c) * s)


def _function(
    name: str, kernels: Any, code: int, conditions: tuple[Any, Any], **others: Any
) -> Function:
    """`kernels`: the module with its values and slopes."""
    condition, slope_condition = conditions
    return Function(
        name=name,
        values=partial(kernels.fill_values, code),
        slopes=partial(kernels.fill_slopes, code),
        exact_value=exact.ball(name),
        exact_slope=exact.ball(f"{name}'"),
        condition=condition,
        slope_condition=slope_condition,
        cases=partial(cases_of, name),
        invariants=INVARIANTS[name],
        slope_forms=forms.SLOPE_FORMS[name],
        primitives=forms.PRIMITIVES,
        definition=DEFINITIONS.get(name),
        **others,
    )


def _inverse(name: str, *conditions: Any, **others: Any) -> Function:
    fast = inverse_float64.FAST[name]
    return _function(name, inverse, inverse.CODES[name], conditions, fast=fast, **others)


def _turns(name: str, code: int, *conditions: Any) -> Function:
    return _function(name, turns, code, conditions, fast=turns.FAST[name])


_ASIN = _inverse("asin", partial(_condition, np.arcsin), _slope_condition)
_ACOS = _inverse("acos", partial(_condition, np.arccos), _slope_condition)
_ATAN = _inverse("atan", _atan_condition, _atan_slope_condition, exact_gradient=exact.atan_gradient)
_SINPI = _turns("sinpi", SIN, _cotangent, _tangent)
_COSPI = _turns("cospi", COS, _tangent, _cotangent)
FUNCTIONS = (_ASIN, _ACOS, _ATAN, _SINPI, _COSPI)


def asin(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = asin x, the angle in [-pi/2, pi/2] whose sine is x. Otherwise as `sin`.

    Relative radius <= 2^-99 for float64, 2^-49 for narrower inputs unless the question needs more;
    asin(±0) = ±0 exactly; NaN for |x| > 1. Source: IEEE 754-2019, section 9.2.1, and the error
    budgets in `inverse` and `inverse_float64` of `kernels.trigonometric`.
    """
    return oracle.forward(_ASIN, x, certify)


def acos(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = acos x, the angle in [0, pi] whose cosine is x; otherwise as `asin`. acos(1) = +0
    exactly. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_ACOS, x, certify)


def atan(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = atan x, the angle in [-pi/2, pi/2] whose tangent is x; otherwise as `asin`. atan(±inf)
    encloses ±pi/2. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_ATAN, x, certify)


def sinpi(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = sin(pi x), element by element. Otherwise as `sin`.

    Relative radius <= 2^-101 for float64, 2^-49 for narrower inputs unless the question needs more.
    Exact at multiples of 1/2, with sinpi(±n) = ±0; infinities and NaN give NaN.
    Source: IEEE 754-2019, section 9.2.1, and the budget in `kernels.trigonometric.turns`.
    """
    return oracle.forward(_SINPI, x, certify)


def cospi(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = cos(pi x); otherwise as `sinpi`. Exact at multiples of 1/2, with cospi(n + 1/2) = +0.
    Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_COSPI, x, certify)
