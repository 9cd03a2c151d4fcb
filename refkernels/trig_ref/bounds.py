"""Condition numbers and declared limits of sin, cos and tan and of their backward passes.

The limit is a specification, not a theorem: LIMIT ulp of the exact value (Goldberg's ulp, constant
through the subnormals), the one fixed tolerance of this project. Backward: a slope with that error,
one rounded product, and half a subnormal where the product underflows:
    |dx error| <= LIMIT |dy| ulp(f'(x)) + u |dx| + 2^(emin - p).
Frameworks form tan's slope as 1 + y^2 from their own y, which doubles its relative error: tan gets
|dy| 2 |y| LIMIT ulp(y) besides: a forward inside the limit is never blamed for its backward. Where
the slope itself overflows the format, so may the gradient: the bound is infinite there.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.trig_ref import oracle

LIMIT = 4.0
LIMIT_SOURCE = (
    "declared specification limit: 4 ulp, the order of OpenCL's (full profile) and CUDA's "
    "published single-precision maxima"
)
_FORWARD = {"sin": oracle.sin, "cos": oracle.cos, "tan": oracle.tan}
Doubles = npt.NDArray[np.float64]


def forward_bound(name: str, x: Any, *, format: Format | str, limit: float = LIMIT) -> Doubles:
    """limit · ulp(f(x)) in the format, shaped like x; NaN where f(x) is.

    Raises as `trig_ref.sin` does.
    """
    oracle.code_of(name)
    return limit * _ulp(_FORWARD[name](x), formats.get(format))


def backward_bound(
    name: str, dy: Any, x: Any, *, format: Format | str, limit: float = LIMIT
) -> Doubles:
    """limit |dy| ulp(f'(x)) + u |dx| + 2^(emin - p), and for tan 2 |y| limit |dy| ulp(y) besides;
    shaped like x; NaN where dx is, infinite where f'(x) overflows the format.

    Raises as `trig_ref.backward` does.
    """
    target = formats.get(format)
    dy, x = oracle.pair_of(dy, x)
    dx = np.abs(np.asarray(oracle.backward(name, dy, x)))
    slope = oracle.backward(name, np.ones(x.shape), x)
    slope_error = _ulp(slope, target)
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "tan":
            y = oracle.tan(x)
            slope_error = slope_error + 2.0 * np.abs(np.asarray(y)) * _ulp(y, target)
        bound = limit * np.abs(to_float64(dy)) * slope_error + target.u * dx
        bound = np.where(np.abs(np.asarray(slope)) > target.max, np.inf, bound)
    underflow = max(target.min_subnormal / 2, 2.0**-1074)
    return np.where(np.isnan(dx), np.nan, bound + underflow)


def forward_condition(name: str, x: Any) -> Doubles:
    """|x f'(x) / f(x)|: sin |x cot x|, cos |x tan x|, tan |2x / sin 2x|; 1 at 0 for sin and tan.

    A float64 quotient of certified values: good to a few units of 2^-53.
    """
    oracle.code_of(name)
    wide, tangent = _tangent(x)
    with np.errstate(all="ignore"):
        if name == "cos":
            return np.abs(wide * tangent)
        inverse = np.where(wide == 0.0, 1.0, np.abs(wide / tangent))
        return inverse if name == "sin" else inverse + np.abs(wide * tangent)


def backward_condition(name: str, dy: Any, x: Any) -> Doubles:
    """|x f''(x) / f'(x)|, the condition of dy f'(x) in x (in dy it is 1): sin |x tan x|,
    cos |x cot x|, tan |2 x tan x|."""
    oracle.code_of(name)
    _, x = oracle.pair_of(dy, x)
    if name == "cos":
        return forward_condition("sin", x)
    with np.errstate(over="ignore"):
        return forward_condition("cos", x) * (2.0 if name == "tan" else 1.0)


def _tangent(x: Any) -> tuple[Doubles, Doubles]:
    return to_float64(as_float_array(x, "x")), np.asarray(oracle.tan(x))


def _ulp(exact: Enclosure, format: Format) -> Doubles:
    """Goldberg's ulp of the enclosed values, the smaller one where hi is a power of two that the
    value stays below; NaN where the value is not finite."""
    mantissa, exponent = np.frexp(exact.hi)
    below = (np.abs(mantissa) == 0.5) & (exact.lo * exact.hi < 0.0)
    power = exponent.astype(np.int64) - 1 - below + exact.scale
    power = np.where(exact.hi == 0.0, format.emin, np.maximum(power, format.emin))
    ulp = np.ldexp(1.0, power - format.p + 1)
    return np.where(np.isfinite(exact.hi), ulp, np.nan)
