"""sin, cos and tan as `Function` records, and by their names."""

from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Doubles, Function
from refkernels.kernels.trigonometric.float64 import FAST
from refkernels.kernels.trigonometric.values import COS, SIN, TAN, fill_slopes, fill_values
from refkernels.trig_ref import exact, forms
from refkernels.trig_ref.cases import cases_of
from refkernels.trig_ref.definitions import DEFINITIONS
from refkernels.trig_ref.invariants import INVARIANTS


def _tangent(x: Doubles) -> Doubles:
    return np.asarray(oracle.values(_TAN, x))


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


def _function(name: str, code: int, condition: Any, slope_condition: Any) -> Function:
    return Function(
        name=name,
        values=partial(fill_values, code),
        slopes=partial(fill_slopes, code),
        exact_value=exact.ball(name),
        exact_slope=exact.ball(f"{name}'"),
        condition=condition,
        slope_condition=slope_condition,
        cases=partial(cases_of, name),
        invariants=INVARIANTS[name],
        fast=FAST[name],
        slope_forms=forms.SLOPE_FORMS[name],
        primitives=forms.PRIMITIVES,
        definition=DEFINITIONS.get(name),
    )


_SIN = _function("sin", SIN, _inverse, _direct)
_COS = _function("cos", COS, _direct, _inverse)
_TAN = _function("tan", TAN, _both, _twice)
FUNCTIONS = (_SIN, _COS, _TAN)


def sin(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = sin x, of every element, in radians.

    x: any shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`). Relative
    radius <= 2^-101 for float64, 2^-49 for narrower inputs unless the question needs more; sin(±0)
    = ±0 exactly; infinities and NaN give NaN. The bound of kernels is `forward_bound`, a library
    limit in ulp. Raises TypeError for other dtypes and ValueError for an unknown question. Sources:
    IEEE 754-2019, section 9.2.1; for the reduction Payne and Hanek (1983),
    doi:10.1145/1057600.1057602; the error budgets in `values` and `float64` of
    `kernels.trigonometric`.
    """
    return oracle.forward(_SIN, x, certify)


def cos(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = cos x; otherwise as `sin`. For float64 cos(±0) = 1 exactly. Source: IEEE 754-2019,
    section 9.2.1.
    """
    return oracle.forward(_COS, x, certify)


def tan(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = tan x; otherwise as `sin`, with twice its radius. tan(±0) = ±0 exactly. Source: IEEE
    754-2019, section 9.2.1.
    """
    return oracle.forward(_TAN, x, certify)
