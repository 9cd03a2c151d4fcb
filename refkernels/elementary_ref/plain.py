"""Working-precision algorithms: plain, careful float32 and float64 kernels.

exp and expm1: Cody and Waite's reduction n = rint(x / ln 2), r = (x - n C1) - n C2, the Taylor
series of expm1(r), and (1 + p) 2^n or 2^n p + (2^n - 1). log: x = 2^e (1 + f), s = f / (2 + f),
log(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2))). log1p(x) = log(u) x / (u - 1) with u = 1 + x. All
others follow from these by textbook formulas, arranged so that nothing overflows before the result.
NumPy keeps every operation in the dtype of x.

Sources: Cody and Waite, "Software Manual for the Elementary Functions" (1980); fdlibm's e_log.c
(Sun Microsystems, 1993); for log1p Kahan, in Goldberg (1991), theorem 4, doi:10.1145/103162.103163.
"""

import math
from typing import Any

import numpy as np

from refkernels.elementwise.function import Array

_SETTINGS: dict[Any, tuple[float, float, int, int, float, float]] = {
    # C1, C2, terms of expm1, terms of log, the |x| at which exp is 0 or infinite, or absorbs a 1
    np.float32: (0.693359375, -2.12194440054690583e-4, 8, 6, 110.0, 20.0),
    np.float64: (6.93147180369123816490e-01, 1.90821492927058770002e-10, 14, 12, 760.0, 40.0),
}


def _polynomial(coefficients: list[float], x: Array) -> Array:
    kind = x.dtype.type
    result = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result * x + kind(coefficient)
    return result


def _reduced(x: Array) -> tuple[Array, Array]:
    """n and expm1(r)."""
    kind = x.dtype.type
    first, second, _, _, edge, _ = _SETTINGS[kind]
    x = np.clip(x, -edge, edge)
    n = np.rint(x * kind(1 / math.log(2)))
    return n, _expm1_reduced((x - n * kind(first)) - n * kind(second))


def _expm1_reduced(r: Array) -> Array:
    terms = _SETTINGS[r.dtype.type][2]
    return r + r * r * _polynomial([1 / math.factorial(k) for k in range(2, terms)], r)


def _scaled(p: Array, n: Array) -> Array:
    """p 2^n, rounded once."""
    exponent = np.where(np.isnan(n), 0, n).astype(np.int32)
    return np.asarray(np.ldexp(p, exponent))


def exp(x: Array) -> Array:
    n, p = _reduced(x)
    return _scaled(1 + p, n)


def _exp2(x: Array, factor: float) -> Array:
    kind = x.dtype.type
    edge = 2 * _SETTINGS[kind][4]
    x = np.clip(x, -edge, edge)
    n = np.rint(x)
    return _scaled(kind(factor) * (1 + _expm1_reduced((x - n) * kind(math.log(2)))), n)


def exp2(x: Array) -> Array:
    return _exp2(x, 1.0)


def exp2_slope(x: Array) -> Array:
    return _exp2(x, math.log(2))


def expm1(x: Array) -> Array:
    drowned = _SETTINGS[x.dtype.type][5]
    n, p = _reduced(np.minimum(x, drowned))
    power = _scaled(np.ones_like(x), n)
    small = np.where(n == 0, p, _scaled(p, n) + (power - 1))
    return np.where(x == 0, x, np.where(x > drowned, exp(x), small))


def _log_parts(x: Array) -> tuple[Array, Array]:
    """e and log(1 + f) of positive finite x."""
    kind = x.dtype.type
    m, exponent = np.frexp(x)
    low = m < kind(math.sqrt(0.5))
    f = np.where(low, m + m, m) - 1
    s = f / (2 + f)
    z = s * s
    half = kind(0.5) * f * f
    terms = _SETTINGS[kind][3]
    r = z * _polynomial([2 / (2 * k + 1) for k in range(1, terms)], z)
    return (exponent - low).astype(kind), f - (half - s * (half + r))


def _defined(x: Array, y: Array) -> Array:
    y = np.where(x > 0, y, np.where(x == 0, -np.inf, np.nan)).astype(x.dtype)
    return np.where(x == np.inf, x, y)


def log(x: Array) -> Array:
    first, second = _SETTINGS[x.dtype.type][:2]
    e, y = _log_parts(x)
    return _defined(x, e * x.dtype.type(first) + (y + e * x.dtype.type(second)))


def log2(x: Array) -> Array:
    e, y = _log_parts(x)
    return _defined(x, e + y * x.dtype.type(1 / math.log(2)))


def log10(x: Array) -> Array:
    return log(x) * x.dtype.type(1 / math.log(10))


def log1p(x: Array) -> Array:
    u = 1 + x
    y = np.where(u == 1, x, log(u) * (x / (u - 1)))
    return np.where(np.isinf(u), log(u), y)


def _half_exp(x: Array) -> Array:
    """exp(|x| / 2): its square overflows only where the result does."""
    return exp(np.abs(x) * x.dtype.type(0.5))


def sinh(x: Array) -> Array:
    kind = x.dtype.type
    size = np.abs(x)
    m = expm1(np.minimum(size, 40))
    w = _half_exp(x)
    y = np.where(size < 22, kind(0.5) * (m + m / (m + 1)), (kind(0.5) * w) * w)
    return np.copysign(y, x)


def cosh(x: Array) -> Array:
    kind = x.dtype.type
    size = np.abs(x)
    e = exp(np.minimum(size, 40))
    w = _half_exp(x)
    return np.where(size < 22, kind(0.5) * e + kind(0.5) / e, (kind(0.5) * w) * w)


def tanh(x: Array) -> Array:
    size = np.abs(x)
    m = expm1(2 * np.minimum(size, 22))
    return np.copysign(np.where(size > 1, 1 - 2 / (m + 2), m / (m + 2)), x)


def tanh_slope(x: Array) -> Array:
    c = 1 / cosh(x)
    return c * c


def sigmoid(x: Array) -> Array:
    e = exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def sigmoid_slope(x: Array) -> Array:
    return sigmoid(x) * sigmoid(-x)


def _left_tail(factor: Array, x: Array) -> Array:
    """factor exp(x) for x << 0, without the rounding of a subnormal exp(x)."""
    w = 1 / _half_exp(np.maximum(x, -_SETTINGS[x.dtype.type][4] * 1.5))
    return (factor * w) * w


def silu(x: Array) -> Array:
    tail = _left_tail(np.maximum(x, -1000), x)
    return np.where(x < -40, tail, x * sigmoid(np.maximum(x, -40)))


def silu_slope(x: Array) -> Array:
    tail = _left_tail(1 + np.maximum(x, -1000), x)
    near = np.clip(x, -40, 40)
    middle = sigmoid(near) * (1 + near * sigmoid(-near))
    return np.where(x < -40, tail, middle)


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + log1p(exp(-np.abs(x)))


def sqrt(x: Array) -> Array:
    return np.sqrt(x)


def sqrt_slope(x: Array) -> Array:
    return x.dtype.type(0.5) / np.sqrt(x)


def rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def rsqrt_slope(x: Array) -> Array:
    return x.dtype.type(-0.5) * rsqrt(x) / np.abs(x)


def reciprocal(x: Array) -> Array:
    return 1 / x


def reciprocal_slope(x: Array) -> Array:
    return -np.abs((1 / x) / x)


def _inverse(constant: float, x: Array) -> Array:
    kind = x.dtype.type
    return np.where(x < 0, kind(np.nan), kind(constant) / x)


def log_slope(x: Array) -> Array:
    return _inverse(1.0, x)


def log2_slope(x: Array) -> Array:
    return _inverse(1 / math.log(2), x)


def log10_slope(x: Array) -> Array:
    return _inverse(1 / math.log(10), x)


def log1p_slope(x: Array) -> Array:
    return np.where(x < -1, x.dtype.type(np.nan), 1 / (1 + x))
