"""Exponentials, logarithms and functions made of them: certified values and gradients.

    exp(x), log(x), tanh(x), ... -> Enclosure        backward(name, dy, x) -> Enclosure of dy f'(x)
    forward_bound(name, x, format=...)               backward_bound(name, dy, x, format=...)
    forward_condition(name, x)                       backward_condition(name, dy, x)
    forward_plain(name, x, format=...)               backward_plain(name, dy, x, format=...)

Inputs of 32 bits and fewer go to a vectorised float64 kernel with a proven relative bound (`fast`
of `kernels.elementary`). Double-doubles come from two cores there, `exponential` and `logarithm`
(tables and Taylor series, with the error budgets). Arb and rational arithmetic decide the elements
that are still open (`exact`).

Special values follow the limits; rsqrt(-0) and reciprocal(-0) are -inf and sqrt(-0) is -0 as in
IEEE 754, and slopes at -0 are those of the formulas 1/x, 1/(2 sqrt x), ...: infinite, with the sign
that -0 gives them. A tail below 2^-10^8 is enclosed between zero and that number; the exponential
of an argument beyond 2^29 is a finite number beyond every format (`Enclosure`): every rounding is
certified.
"""

__kernels_of__ = ("kernels.elementary", "elementwise")

from refkernels.elementary_ref.functions import (
    FUNCTIONS,
    cosh,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    gelu,
    gelu_tanh,
    log,
    log1p,
    log2,
    log10,
    reciprocal,
    rsqrt,
    sigmoid,
    silu,
    sinh,
    softplus,
    sqrt,
    tanh,
)
from refkernels.elementwise.ops import Family

__all__ = [
    "OPS",
    "backward",
    "backward_bound",
    "backward_condition",
    "backward_plain",
    "cases",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "forward_bound",
    "forward_condition",
    "forward_plain",
    "gelu",
    "gelu_tanh",
    "log",
    "log1p",
    "log2",
    "log10",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "silu",
    "sinh",
    "softplus",
    "sqrt",
    "tanh",
]

_FAMILY = Family("elementary_ref", FUNCTIONS)
OPS = _FAMILY.ops
backward = _FAMILY.backward
backward_bound = _FAMILY.backward_bound
backward_condition = _FAMILY.backward_condition
backward_plain = _FAMILY.backward_plain
cases = _FAMILY.cases
forward_bound = _FAMILY.forward_bound
forward_condition = _FAMILY.forward_condition
forward_plain = _FAMILY.forward_plain
