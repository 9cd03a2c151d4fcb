"""sinpi(x) = sin(pi x) and cospi(x) = cos(pi x): the reduction is exact, in both tiers.

2 x = n + f with an integer n and |f| <= 1/2, both exact in binary; then the angle is f pi/2, n
quadrants on. Where f = 0 the value is exactly 0, 1 or -1, with IEEE 754-2019's signs of zero:
sinpi(±n) = ±0, cospi(n + 1/2) = +0.

float64 tier: as in float64.py, without an error of f: sin 2.7 U, cos 4.7 U (U = 2^-53).
Double-doubles: f pi/2 with an error of 2.2 U^2, less than the REDUCTION_ERROR of the budget in
values.py, so its ERROR holds.
Source: IEEE 754-2019, section 9.2.1.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import dd_mul_double
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.trigonometric.float64 import ERROR as FAST_ERROR
from refkernels.kernels.trigonometric.float64 import ROUNDER, sine_cosine, turned
from refkernels.kernels.trigonometric.tables import PI_HIGH, PI_LOW, PIO2_HIGH, PIO2_LOW
from refkernels.kernels.trigonometric.values import COS, ERROR, SCALED, SIN, sincos_reduced

_EVEN_SINGLE = 2.0**24  # every float32 from here on is an even integer
_EVEN = 2.0**53


@inner
def value(code: int, x: Any) -> Any:
    """sinpi x (SIN) or cospi x (COS) as (high, low, radius, scale)."""
    if not math.isfinite(x):
        return math.nan, 0.0, 0.0, 0
    doubled = 2.0 * abs(x) if abs(x) < _EVEN else 0.0
    n = np.rint(doubled)
    f = doubled - n
    quadrant = np.int64(n) & 3
    sign = math.copysign(1.0, x) if code == SIN else 1.0
    if code == COS:  # cos is sin a quadrant later
        quadrant = (quadrant + 1) & 3
    if quadrant & 2:
        sign = -sign
    if f == 0.0:
        return _integer(code, x, quadrant, sign)
    if abs(x) < SCALED:
        return _tiny(code, x)
    sh, sl, ch, cl = sincos_reduced(*dd_mul_double(PIO2_HIGH, PIO2_LOW, f))
    high, low = (ch, cl) if quadrant & 1 else (sh, sl)
    return sign * high, sign * low, abs(high) * ERROR, 0


@inner
def _integer(code: int, x: Any, quadrant: int, sign: Any) -> Any:
    """At multiples of 1/2."""
    if quadrant & 1:
        return sign, 0.0, 0.0, 0
    return (math.copysign(0.0, x) if code == SIN else 0.0), 0.0, 0.0, 0


@inner
def _tiny(code: int, x: Any) -> Any:
    """|x| < 2^-250: pi x, or 1 with a quadratic term below 5 x^2."""
    if code == COS:
        return 1.0, -(2.0**-490), 2.0**-490, 0
    high, low = dd_mul_double(PI_HIGH, PI_LOW, x * 2.0**600)
    return high, low, abs(high) * ERROR, -600


@njit(inline="always")
def _fast_value(code: int, x: Any) -> Any:
    inside = x if abs(x) < _EVEN_SINGLE else x * 0.0  # infinities become NaN
    doubled = inside + inside
    shifted = doubled + ROUNDER
    s, c = sine_cosine(doubled - (shifted - ROUNDER))
    y = turned(code, np.float64(shifted).view(np.uint64), s, c)
    if code == COS:
        return y + 0.0  # -0 becomes +0
    return x * 0.0 if y == 0.0 else y


@njit(nogil=True)
def sinpi_kernel(x: Any, hi: Any) -> None:
    """sinpi of float32, within FAST_ERROR."""
    full_width()
    for i in range(x.size):
        hi[i] = _fast_value(SIN, np.float64(x[i]))


@njit(nogil=True)
def cospi_kernel(x: Any, hi: Any) -> None:
    """cospi of float32, within FAST_ERROR."""
    full_width()
    for i in range(x.size):
        hi[i] = _fast_value(COS, np.float64(x[i]))


FAST = {"sinpi": Fast(sinpi_kernel, FAST_ERROR), "cospi": Fast(cospi_kernel, FAST_ERROR)}
