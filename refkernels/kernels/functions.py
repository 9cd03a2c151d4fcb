"""The functions of one number that formulas know, by name: their kernels, limits and definitions.

A function without a definition is a primitive of formulas.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.filling import filled
from refkernels.kernels.elementary import (
    erf,
    exponentials,
    gelu,
    gelu_tanh,
    hyperbolic,
    logarithms,
    logistic,
    powers,
)
from refkernels.kernels.elementary.fast import FAST
from refkernels.kernels.elementary.logarithms import LOG, LOG2, LOG10
from refkernels.kernels.real_function import RealFunction
from refkernels.kernels.trigonometric import float64, inverse, inverse_float64, turns, values
from refkernels.kernels.trigonometric.values import COS, SIN, TAN

HALF = Fraction(1, 2)
ERF_LIMIT = 16.0
"""4 ulp is no limit of erf and erfc: CUDA's erfcf errs by 4.49 on some float32, and the erf inside
PyTorch's GELU by more than 4."""

# name: its kernel, and what that takes before x.
_VALUES: dict[str, tuple[Any, ...]] = {
    "exp": (exponentials.exp,),
    "exp2": (exponentials.exp2,),
    "expm1": (exponentials.expm1,),
    "log": (logarithms.log, LOG),
    "log2": (logarithms.log, LOG2),
    "log10": (logarithms.log, LOG10),
    "log1p": (logarithms.log1p,),
    "sinh": (hyperbolic.sinh,),
    "cosh": (hyperbolic.cosh,),
    "tanh": (hyperbolic.tanh,),
    "sigmoid": (logistic.sigmoid,),
    "silu": (logistic.silu,),
    "softplus": (logistic.softplus,),
    "sqrt": (powers.sqrt,),
    "rsqrt": (powers.rsqrt,),
    "reciprocal": (powers.reciprocal,),
    "erf": (erf.erf,),
    "erfc": (erf.erfc,),
    "gelu": (gelu.gelu,),
    "gelu_tanh": (gelu_tanh.gelu_tanh,),
    "sin": (values.value, SIN),
    "cos": (values.value, COS),
    "tan": (values.value, TAN),
    "asin": (inverse.value, inverse.ASIN),
    "acos": (inverse.value, inverse.ACOS),
    "atan": (inverse.value, inverse.ATAN),
    "sinpi": (turns.value, SIN),
    "cospi": (turns.value, COS),
}
_FAST = {
    **FAST,
    **float64.FAST,
    **inverse_float64.FAST,
    **turns.FAST,
    "erf": Fast(erf.erf_fast, erf.FAST_ERF_BOUND),
    "erfc": Fast(erf.erfc_fast, erf.FAST_ERFC_BOUND),
    "gelu": Fast(gelu.gelu_fast, gelu.FAST_GELU_BOUND),
    "gelu_tanh": Fast(gelu_tanh.gelu_tanh_fast, gelu_tanh.FAST_GELU_TANH_BOUND),
}
_OF_ERF = (
    ERF_LIMIT,
    'library limit: 16 ulp, OpenCL\'s full profile (OpenCL C, "Relative Error as ULPs"); '
    "known libraries exceed the 4 ulp of other functions",
)
_LIMITS: dict[str, tuple[float | None, str]] = {
    **dict.fromkeys(("sigmoid", "silu", "softplus", "gelu", "gelu_tanh"), (None, "")),
    "sqrt": (0.5, "IEEE 754: correctly rounded"),
    "reciprocal": (0.5, "IEEE 754: a division, correctly rounded"),
    "erf": _OF_ERF,
    "erfc": _OF_ERF,
    "rsqrt": (
        2.0,
        'library limit: 2 ulp, OpenCL\'s full profile (OpenCL C, "Relative Error as ULPs"), and '
        "rsqrtf's maximum in the CUDA C++ Programming Guide; 1 / sqrt(x) in two roundings keeps it",
    ),
}


def _over_log(base: int) -> Callable[[Any, Any], Any]:
    return lambda xp, x: xp.log(x) / xp.log(xp.number(base))


def _gelu_tanh(xp: Any, x: Any) -> Any:
    cubic = x + xp.number(Fraction(44715, 10**6)) * xp.power(x, 3)
    return x * xp.number(HALF) * (1 + xp.tanh(xp.sqrt(2 / xp.pi()) * cubic))


def _asin(xp: Any, x: Any) -> Any:
    return xp.atan(x / xp.sqrt((1 - x) * (1 + x)))


_DEFINITIONS: dict[str, Callable[[Any, Any], Any]] = {
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


def _function(name: str) -> RealFunction:
    known: dict[str, Any] = {}
    if name in _LIMITS:
        known["limit"], known["limit_source"] = _LIMITS[name]
    return RealFunction(
        name=name,
        fast=_FAST[name],
        values=filled(*_VALUES[name]),
        definition=_DEFINITIONS.get(name),
        **known,
    )


FUNCTIONS = {name: _function(name) for name in _VALUES}
