"""The elementary functions as `Function` records."""

from functools import partial
from typing import Any

from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.filling import filled
from refkernels.elementary_ref import conditions, exact, forms
from refkernels.elementary_ref.cases import cases_of
from refkernels.elementary_ref.definitions import DEFINITIONS
from refkernels.elementary_ref.invariants import INVARIANTS
from refkernels.elementwise.function import Function
from refkernels.kernels.elementary import (
    erf as erf_kernels,
)
from refkernels.kernels.elementary import exponentials, hyperbolic, logarithms, logistic, powers
from refkernels.kernels.elementary import gelu as gelu_kernels
from refkernels.kernels.elementary import gelu_tanh as gelu_tanh_kernels
from refkernels.kernels.elementary.fast import FAST
from refkernels.kernels.elementary.logarithms import LOG, LOG2, LOG10

# name: f and f', each as a kernel and what it takes before x.
_VALUES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "exp": ((exponentials.exp,), (exponentials.exp,)),
    "exp2": ((exponentials.exp2, False), (exponentials.exp2, True)),
    "expm1": ((exponentials.expm1,), (exponentials.exp,)),
    "log": ((logarithms.log, LOG), (logarithms.log_slope, LOG)),
    "log2": ((logarithms.log, LOG2), (logarithms.log_slope, LOG2)),
    "log10": ((logarithms.log, LOG10), (logarithms.log_slope, LOG10)),
    "log1p": ((logarithms.log1p,), (logarithms.log1p_slope,)),
    "sinh": ((hyperbolic.sinh,), (hyperbolic.cosh,)),
    "cosh": ((hyperbolic.cosh,), (hyperbolic.sinh,)),
    "tanh": ((hyperbolic.tanh,), (hyperbolic.tanh_slope,)),
    "sigmoid": ((logistic.sigmoid,), (logistic.sigmoid_slope,)),
    "silu": ((logistic.silu,), (logistic.silu_slope,)),
    "softplus": ((logistic.softplus,), (logistic.sigmoid,)),
    "sqrt": ((powers.sqrt,), (powers.rsqrt, 0.5, False)),
    "rsqrt": ((powers.rsqrt, 1.0, False), (powers.rsqrt, -0.5, True)),
    "reciprocal": ((powers.reciprocal,), (powers.reciprocal_slope,)),
    "erf": ((erf_kernels.erf,), (erf_kernels.erf_slope,)),
    "erfc": ((erf_kernels.erfc,), (erf_kernels.erfc_slope,)),
    "gelu": ((gelu_kernels.gelu,), (gelu_kernels.gelu_slope,)),
    "gelu_tanh": ((gelu_tanh_kernels.gelu_tanh,), (gelu_tanh_kernels.gelu_tanh_slope,)),
}
_FAST = FAST | {
    "erf": Fast(erf_kernels.erf_fast, erf_kernels.FAST_ERF_BOUND),
    "erfc": Fast(erf_kernels.erfc_fast, erf_kernels.FAST_ERFC_BOUND),
    "gelu": Fast(gelu_kernels.gelu_fast, gelu_kernels.FAST_GELU_BOUND),
    "gelu_tanh": Fast(gelu_tanh_kernels.gelu_tanh_fast, gelu_tanh_kernels.FAST_GELU_TANH_BOUND),
}


def _function(name: str) -> Function:
    values, slopes = (filled(*parts) for parts in _VALUES[name])
    return Function(
        name=name,
        fast=_FAST[name],
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


FUNCTIONS = tuple(_function(name) for name in _VALUES)
