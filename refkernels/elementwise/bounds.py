"""Condition numbers and declared limits of elementwise functions and of their backward passes.

The limit is a specification, not a theorem: LIMIT ulp of the exact value (Goldberg's ulp, constant
through the subnormals), the one fixed tolerance of this project. Backward: a slope with that error,
one rounded product, and half a subnormal where the product underflows:
    |dx error| <= LIMIT |dy| ulp(f'(x)) + u |dx| + 2^(emin - p).
A function whose slope frameworks form from their own rounded y or x (tan: 1 + y^2) adds what that
costs: a forward inside the limit is never blamed for its backward. Where the slope itself
overflows the format, so may the gradient: the bound is infinite there.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.enclosure import Enclosure, directed
from refkernels.arithmetic.formats import Format, exponent_of
from refkernels.arithmetic.jit import njit
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Array, Doubles, Function

LIMIT = 4.0
LIMIT_SOURCE = (
    "declared specification limit: 4 ulp, the order of OpenCL's (full profile) and CUDA's "
    "published single-precision maxima"
)


def forward_bound(
    function: Function, x: Any, *, format: Format | str, limit: float = LIMIT
) -> Doubles:
    """limit · ulp(f(x)) in the format, shaped like x; NaN where f(x) is not finite.

    Raises as `oracle.forward` does.
    """
    x = as_float_array(x, "x")
    ulp = _ulp_of_values(function, x, oracle.forward(function, x), formats.get(format))
    with np.errstate(over="ignore"):
        return limit * ulp


def backward_bound(
    function: Function, dy: Any, x: Any, *, format: Format | str, limit: float = LIMIT
) -> Doubles:
    """limit |dy| (ulp(f'(x)) + what frameworks' formula of the slope adds) + u |dx| + 2^(emin - p),
    shaped like x; NaN where dx is, infinite where f'(x) overflows the format.

    Raises as `oracle.backward` does.
    """
    target = formats.get(format)
    dy, x = oracle.pair_of(dy, x)
    wide = to_float64(dy)
    slope = oracle.slopes(function, x)
    slope_error = _ulp(slope, target)[0]
    with np.errstate(all="ignore"):
        steep = np.asarray(slope)
        finite = np.isfinite(slope.hi) | np.isinf(slope.radius)  # also beyond float64 or any scale
        zero = (wide == 0.0) & finite
        dx = np.where(zero, 0.0, np.abs(wide * steep))
        if function.extra_slope_error is not None:
            y = oracle.forward(function, x)
            ulp_y = _ulp_of_values(function, x, y, target)
            slope_error = slope_error + function.extra_slope_error(
                to_float64(x), np.asarray(y), ulp_y, target
            )
        error = np.where(zero, 0.0, limit * np.abs(wide) * slope_error)
        bound = error + target.u * dx
        bound = np.where(np.abs(steep) > target.max, np.inf, bound)
    underflow = max(target.min_subnormal / 2, 2.0**-1074)
    return np.where(np.isnan(dx), np.nan, bound + underflow)


def forward_condition(function: Function, x: Any) -> Doubles:
    """|x f'(x) / f(x)|, a float64 estimate shaped like x."""
    with np.errstate(all="ignore"):
        return function.condition(to_float64(as_float_array(x, "x")))


def backward_condition(function: Function, dy: Any, x: Any) -> Doubles:
    """|x f''(x) / f'(x)|, the condition of dy f'(x) in x (in dy it is 1)."""
    _, x = oracle.pair_of(dy, x)
    with np.errstate(all="ignore"):
        return function.slope_condition(to_float64(x))


def _ulp_of_values(function: Function, x: Array, y: Enclosure, format: Format) -> Doubles:
    """ulp(f(x)); the double-double tier says on which side of a power of two a value lies."""
    ulp, straddles = _ulp(y, format)
    if straddles.any():
        ulp[straddles] = _ulp(oracle.values(function, x[straddles]), format)[0]
    return ulp


def _ulp(exact: Enclosure, format: Format) -> tuple[Doubles, Array]:
    """Goldberg's ulp of the enclosed values, the smaller one where the interval holds a power of
    two, and where it does so; NaN where the value is not finite."""
    ulp, straddles = np.empty(exact.size), np.empty(exact.size, np.bool_)
    parts = (exact.hi, exact.lo, exact.radius, exact.scale)
    flat = (np.ascontiguousarray(part).reshape(-1) for part in parts)
    _ulps(*flat, format.p, format.emin, ulp, straddles)
    return ulp.reshape(exact.shape), straddles.reshape(exact.shape)


@njit(nogil=True)
def _ulps(
    hi: Any, lo: Any, radius: Any, scale: Any, p: int, emin: int, ulp: Any, straddles: Any
) -> None:
    for i in range(hi.size):
        straddles[i] = False
        if not np.isfinite(hi[i]):
            ulp[i] = np.nan
            continue
        sign = 1.0 if hi[i] >= 0.0 else -1.0
        inner = directed(hi[i], lo[i], -sign * radius[i])
        outer = directed(hi[i], lo[i], sign * radius[i])
        floor = ceiling = emin
        if inner[0] * sign > 0.0:
            floor = max(exponent_of(inner[0], inner[1]) + scale[i], emin)
        if outer[0] != 0.0:
            ceiling = max(exponent_of(outer[0], outer[1]) + scale[i], emin)
        straddles[i] = ceiling > floor
        ulp[i] = np.ldexp(1.0, max(floor - p + 1, -1100))
