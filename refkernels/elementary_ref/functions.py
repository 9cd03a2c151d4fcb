"""The elementary functions as `Function` records."""

from functools import partial
from typing import Any

from refkernels.arithmetic.fast import Fast
from refkernels.elementary_ref import conditions, exact, forms
from refkernels.elementary_ref.cases import cases_of
from refkernels.elementary_ref.definitions import DEFINITIONS
from refkernels.elementary_ref.invariants import INVARIANTS
from refkernels.elementwise.function import Filler, Function
from refkernels.kernels.elementary import (
    erf as erf_kernels,
)
from refkernels.kernels.elementary import exponentials, hyperbolic, logarithms, logistic, powers
from refkernels.kernels.elementary import gelu as gelu_kernels
from refkernels.kernels.elementary import gelu_tanh as gelu_tanh_kernels
from refkernels.kernels.elementary.fast import FAST

# name: the module of its kernels, and the codes of f and f' there.
_KERNELS: dict[str, tuple[Any, int, int]] = {
    "exp": (exponentials, exponentials.EXP, exponentials.EXP),
    "exp2": (exponentials, exponentials.EXP2, exponentials.EXP2_SLOPE),
    "expm1": (exponentials, exponentials.EXPM1, exponentials.EXP),
    "log": (logarithms, logarithms.LOG, logarithms.LOG_SLOPE),
    "log2": (logarithms, logarithms.LOG2, logarithms.LOG2_SLOPE),
    "log10": (logarithms, logarithms.LOG10, logarithms.LOG10_SLOPE),
    "log1p": (logarithms, logarithms.LOG1P, logarithms.LOG1P_SLOPE),
    "sinh": (hyperbolic, hyperbolic.SINH, hyperbolic.COSH),
    "cosh": (hyperbolic, hyperbolic.COSH, hyperbolic.SINH),
    "tanh": (hyperbolic, hyperbolic.TANH, hyperbolic.TANH_SLOPE),
    "sigmoid": (logistic, logistic.SIGMOID, logistic.SIGMOID_SLOPE),
    "silu": (logistic, logistic.SILU, logistic.SILU_SLOPE),
    "softplus": (logistic, logistic.SOFTPLUS, logistic.SIGMOID),
    "sqrt": (powers, powers.SQRT, powers.SQRT_SLOPE),
    "rsqrt": (powers, powers.RSQRT, powers.RSQRT_SLOPE),
    "reciprocal": (powers, powers.RECIPROCAL, powers.RECIPROCAL_SLOPE),
}
# The same of kernels by name, and the bound of the fast one.
_NAMED: dict[str, tuple[Any, float]] = {
    "erf": (erf_kernels, erf_kernels.FAST_ERF_BOUND),
    "erfc": (erf_kernels, erf_kernels.FAST_ERFC_BOUND),
    "gelu": (gelu_kernels, gelu_kernels.FAST_GELU_BOUND),
    "gelu_tanh": (gelu_tanh_kernels, gelu_tanh_kernels.FAST_GELU_TANH_BOUND),
}


def _tiers(name: str) -> tuple[Fast, Filler, Filler]:
    """The float64 tier, and the double-doubles of values and slopes."""
    if name in _NAMED:
        kernels, error = _NAMED[name]
        fast, *fillers = (
            getattr(kernels, f"{name}_{part}") for part in ("fast", "values", "slopes")
        )
        return Fast(fast, error), *fillers
    kernels, value, slope = _KERNELS[name]
    return FAST[name], partial(kernels.fill, value), partial(kernels.fill, slope)


def _function(name: str) -> Function:
    fast, values, slopes = _tiers(name)
    return Function(
        name=name,
        fast=fast,
        values=values,
        slopes=slopes,
        exact_value=exact.ball(name),
        exact_slope=exact.ball(f"{name}'"),
        exact_gradient=exact.gradient(name),
        condition=conditions.FORWARD[name],
        slope_condition=conditions.SLOPE[name],
        cases=partial(cases_of, name),
        invariants=INVARIANTS[name],
        slope_forms=forms.SLOPE_FORMS[name],
        primitives=forms.PRIMITIVES,
        definition=DEFINITIONS.get(name),
        **forms.held_to(name),
    )


FUNCTIONS = tuple(_function(name) for name in (*_KERNELS, *_NAMED))
