"""Working-precision asin, acos, atan, sinpi and cospi: plain, careful float32 and float64 kernels.

The formulas of `kernels.trigonometric` (`inverse_float64`, `turns`) in NumPy, in the dtype of x
throughout, with a polynomial that fits the dtype; pi/2 in two parts, the tail added first. A slope
is its textbook formula, in a form that neither cancels nor overflows.
"""

from typing import Any

import numpy as np

from refkernels.elementwise.function import Array
from refkernels.kernels.trigonometric import tables
from refkernels.kernels.trigonometric.inverse import ACOS, ASIN, ATAN
from refkernels.kernels.trigonometric.values import COS, SIN

_POLYNOMIALS = {
    np.float32: {
        "asin": tables.ASIN_SINGLE,
        "atan": tables.ATAN_SINGLE,
        "sine": tables.SINE_SINGLE,
        "cosine": tables.COSINE_SINGLE,
    },
    np.float64: {
        "asin": tables.ASIN,
        "atan": tables.ATAN,
        "sine": tables.SINE,
        "cosine": tables.COSINE,
    },
}


def plain(code: int, x: Array) -> Array:
    """asin, acos or atan by the algorithm above in x's dtype, float32 or float64."""
    kind: Any = x.dtype.type
    size = np.abs(x)
    high, low = _half_pi(kind)
    if code == ATAN:
        large = size > 1
        t = np.where(large, -1 / size, size)
        r = t + t * (t * t) * _polynomial("atan", t * t)
        return np.copysign(np.where(large, high + (r + low), r), x)
    small = size <= kind(0.5)
    u = np.where(small, size * size, (1 - size) * kind(0.5))
    s = np.where(small, size, np.sqrt(u))
    r = s + s * (u * _polynomial("asin", u))
    if code == ASIN:
        return np.copysign(np.where(small, r, high - (2 * r - low)), x)
    small_result = high - (np.copysign(r, x) - low)
    return np.where(small, small_result, np.where(x > 0, 2 * r, 2 * (high - (r - low))))


def plain_slope(code: int, x: Array) -> Array:
    """1 / sqrt((1 - x)(1 + x)), its negative, or 1 / (1 + x^2)."""
    if code == ATAN:
        size = np.abs(x)
        small = np.minimum(size, 1 / size)
        square = small * small
        return np.where(size > 1, square, x.dtype.type(1)) / (1 + square)
    slope = 1 / np.sqrt((1 - x) * (1 + x))
    return -slope if code == ACOS else slope


def plain_turns(code: int, x: Array) -> Array:
    """sinpi (SIN) or cospi (COS) by the algorithm above in x's dtype."""
    doubled = 2 * np.fmod(np.abs(x), x.dtype.type(2))  # exact
    n = np.rint(doubled)
    f = doubled - n
    u = f * f
    s, c = f * _polynomial("sine", u), 1 + u * _polynomial("cosine", u)
    with np.errstate(invalid="ignore"):
        quadrant = np.nan_to_num(n).astype(np.int64) + (code == COS)
    y = np.where(quadrant & 1, c, s)
    y = np.where(quadrant & 2, -y, y)
    if code == COS:
        return y + x.dtype.type(0)  # -0 becomes +0
    return np.where(y == 0, np.copysign(x.dtype.type(0), x), np.where(np.signbit(x), -y, y))


def plain_turns_slope(code: int, x: Array) -> Array:
    """pi cospi x (SIN) or -pi sinpi x (COS)."""
    pi = x.dtype.type(np.pi)
    return pi * plain_turns(COS, x) if code == SIN else -pi * plain_turns(SIN, x)


def _half_pi(kind: Any) -> tuple[Any, Any]:
    high = kind(tables.PIO2_HIGH)
    return high, kind((tables.PIO2_HIGH - float(high)) + tables.PIO2_LOW)


def _polynomial(name: str, u: Array) -> Array:
    """Horner's rule in the dtype of u."""
    kind: Any = u.dtype.type
    *lower, last = (kind(c) for c in _POLYNOMIALS[kind][name])
    value = np.full_like(u, last)
    for coefficient in reversed(lower):
        value = value * u + coefficient
    return value
