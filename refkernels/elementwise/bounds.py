"""Condition numbers and declared limits of elementwise functions and of their backward passes.

The limit is a specification, not a theorem: LIMIT ulp of the exact value (Goldberg's ulp, constant
through the subnormals), the one fixed tolerance of this project. Backward: a slope with that error,
one rounded product, and half a subnormal where the product underflows:
    |dx error| <= LIMIT |dy| ulp(f'(x)) + u |dx| + 2^(emin - p).
A function whose slope frameworks form from their own rounded y or x (tan: 1 + y^2) adds what that
costs: a forward inside the limit is never blamed for its backward. Where the slope itself
overflows the format, so may the gradient: the bound is infinite there.

Kernels also multiply dy by the factors of a slope in turn (reciprocal: -(dy y) y), where a product
on the way may underflow, or overflow. What they lose so is added (`underflow.loss`: each product
holds dy; 16-bit formats multiply in binary32), and where a product of some factors and dy may
overflow the bound is infinite. The forms that this is proven for, in any order of multiplication
(/ where a factor is a reciprocal), y and s = sigmoid(x) rounded by the kernel itself:
    exp2        dy y ln 2                log2, log10   dy / x / ln b, dy / (x ln b)
    sqrt        dy / 2 / y               rsqrt         -dy y y y / 2
    reciprocal  -dy y y                  sigmoid       dy y (1 - y)
    silu        (dy s) (1 + x (1 - s))   softplus      dy e^x / (1 + e^x), dy s
    sinpi       dy pi cos(pi x)          cospi         -dy pi sin(pi x)
    erf         dy 2/sqrt(pi) e^(-x^2)   erfc          its negative
and dy f'(x) for any function, which for expm1 may be dy y + dy.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.enclosure import Enclosure, directed
from refkernels.arithmetic.formats import Format, exponent_of, working_format
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.mode import in_default_mode
from refkernels.arithmetic.scalars import as_real
from refkernels.arithmetic.underflow import loss
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Array, Doubles, Function

LIMIT = 4.0
LIMIT_SOURCE = (
    "declared specification limit: 4 ulp, the order of OpenCL's (full profile) and CUDA's "
    "published single-precision maxima"
)


@in_default_mode
def forward_bound(
    function: Function,
    x: Any,
    *,
    format: Format | str,
    limit: float = LIMIT,
    known: Enclosure | None = None,
) -> Doubles:
    """limit · ulp(f(x)) in the format, shaped like x; NaN where f(x) is not finite. `known`: f(x),
    where an oracle has given it already.

    Raises as `oracle.forward` does.
    """
    x, limit = as_float_array(x, "x"), _limit(limit)
    values = oracle.forward(function, x) if known is None else known
    ulp = _ulp_of_values(function, x, values, formats.get(format))
    with np.errstate(over="ignore"):
        return limit * ulp


@in_default_mode
def backward_bound(
    function: Function,
    dy: Any,
    x: Any,
    *,
    format: Format | str,
    limit: float = LIMIT,
    known: Enclosure | None = None,
) -> Doubles:
    """limit |dy| (ulp(f'(x)) + what frameworks' formula of the slope adds) + u |dx| + 2^(emin - p)
    + what dy's products with the slope's factors lose, shaped like x; NaN where dx is, infinite
    where f'(x) or such a product overflows. `known`: what `oracle.slopes` gives.

    Raises as `oracle.backward` does.
    """
    target, limit = formats.get(format), _limit(limit)
    dy, x = oracle.pair_of(dy, x)
    wide = to_float64(dy)
    slope = oracle.slopes(function, x) if known is None else known
    slope_error = _ulp(slope, target)[0]
    with np.errstate(all="ignore"):
        steep = np.asarray(slope)
        finite = np.isfinite(slope.hi) | np.isinf(slope.radius)  # also beyond float64 or any scale
        zero = (wide == 0.0) & finite
        dx = np.where(zero, 0.0, np.abs(wide * steep))
        y = ulp_y = np.asarray(np.nan)
        if function.extra_slope_error is not None or function.factors is not None:
            values = oracle.forward(function, x)
            y, ulp_y = np.asarray(values), _ulp_of_values(function, x, values, target)
        if function.extra_slope_error is not None:
            extra = function.extra_slope_error(to_float64(x), y, ulp_y, target)
            slope_error = slope_error + extra
        error = np.where(zero, 0.0, limit * np.abs(wide) * slope_error)
        bound = error + target.u * dx
        if function.factors is not None:
            largest_y = np.abs(y) + limit * ulp_y
            factors = function.factors(to_float64(x), largest_y, np.abs(steep))
            bound = bound + _lost_on_the_way(np.abs(wide), factors, target)
        bound = np.where(np.abs(steep) > target.max, np.inf, bound)
    underflow = max(target.min_subnormal / 2, 2.0**-1074)
    return np.where(np.isnan(dx), np.nan, bound + underflow)


def _lost_on_the_way(dy: Doubles, factors: Any, format: Format) -> Any:
    """What products of |dy| with the factors in turn lose; infinite where one may overflow."""
    work = working_format(format)
    reach = math.prod((np.maximum(factor, 1.0) for factor in factors), start=np.maximum(dy, 1.0))
    lost = loss(work.min_subnormal, *factors, inside=dy)
    return np.where(reach < work.max, np.where(dy == 0.0, 0.0, lost), np.inf)


@in_default_mode
def forward_condition(function: Function, x: Any) -> Doubles:
    """|x f'(x) / f(x)|, a float64 estimate shaped like x."""
    with np.errstate(all="ignore"):
        return function.condition(to_float64(as_float_array(x, "x")))


@in_default_mode
def backward_condition(function: Function, dy: Any, x: Any) -> Doubles:
    """|x f''(x) / f'(x)|, the condition of dy f'(x) in x (in dy it is 1)."""
    _, x = oracle.pair_of(dy, x)
    with np.errstate(all="ignore"):
        return function.slope_condition(to_float64(x))


def _limit(limit: Any) -> float:
    value = as_real(limit, "limit")
    if not value >= 0.0:
        raise ValueError(f"limit is {value}, but it must be a number of ulp, at least 0.")
    return value


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
