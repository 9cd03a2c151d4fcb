"""Working-precision erf, erfc, gelu and gelu_tanh: plain, careful kernels.

    erf   = x P(x^2) for |x| < 1/2, ±(1 - tail) beyond;    erfc = 1 - erf, tail, 2 - tail
    tail  = exp(-s) erfcx(w), s = w^2;    gelu = x tail / 2 for x < 0, x - x tail / 2 else
    gelu_tanh = x e / (1 + e) for x < 0, x / (1 + e) else, e = exp(-v)
Squares and v keep the low part of their products, so that exponentials do not magnify its loss:
-(s + low) = n ln 2 + r, by Cody and Waite (1980). NumPy keeps every operation in the dtype of x,
float32 or float64.
Sources: the scheme of Cody (1969), doi:10.1090/S0025-5718-1969-0247736-4; polynomials from
`kernels.elementary.erf_tables`; the split products of Dekker (1971), doi:10.1007/BF01397083.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from refkernels.elementwise.function import Array
from refkernels.kernels.elementary import erf_tables as tables
from refkernels.kernels.elementary.erf_tail import LIMIT

_SERIES = {np.float32: tables.PLAIN_ERF_32, np.float64: tables.PLAIN_ERF_64}
_LN2 = {  # in two parts, the first short; terms of expm1
    np.float32: (0.693359375, -2.12194440054690583e-4, 8),
    np.float64: (6.93147180369123816490e-01, 1.90821492927058770002e-10, 14),
}
_SPLITTER = {np.float32: 2.0**12 + 1, np.float64: 2.0**27 + 1}
_EDGE = {np.float32: 14.5, np.float64: 39.5}  # |x| beyond which every tail, and x times it, is 0
_TERMS = {np.float32: 6, np.float64: 11}  # of erfcx about a node
_COLUMNS = {  # the high parts of their coefficients, power by power
    kind: np.ascontiguousarray(tables.ERFCX[:, : 2 * terms : 2].T.astype(kind))
    for kind, terms in _TERMS.items()
}


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    kind = x.dtype.type
    result = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result *= x
        result += kind(coefficient)
    return result


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """fl(a b) and the remainder of the product."""
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    high = a * b
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Array) -> tuple[Array, Array]:
    c = a * a.dtype.type(_SPLITTER[a.dtype.type])
    high = c - (c - a)
    return high, a - high


def erfcx(w: Array, low: Any = 0) -> Array:
    """erfcx(w + low) about the nearest node of the oracle's table, from its high parts."""
    kind = w.dtype.type
    w = np.where(w < LIMIT, w, 0)
    mantissa, octave = np.frexp(w)
    near = w < 2
    step = np.rint(np.where(near, w * 16, mantissa * 32))
    row = step.astype(np.int64) + np.where(near, 0, 16 * octave - 16)
    t = (w - np.ldexp(step, np.where(near, -4, octave - 5))) + low
    columns = _COLUMNS[kind]
    p = columns[-1].take(row)
    for column in columns[-2::-1]:
        p *= t
        p += column.take(row)
    return p


def _decay(factor: Array, s: Array, low: Array) -> Array:
    """factor exp(-(s + low)): exp(r) 2^n, with factor (1 + expm1(r)) rounded before it may become
    subnormal."""
    first, second, terms = _LN2[s.dtype.type]
    n = np.rint(s * s.dtype.type(-1 / math.log(2)))
    r = ((-s - n * s.dtype.type(first)) - n * s.dtype.type(second)) - low
    p = r + r * r * _polynomial(tuple(1 / math.factorial(k) for k in range(2, terms)), r)
    exponent = np.where(np.isnan(n), 0, n).astype(np.int32)
    return np.asarray(np.ldexp(factor + factor * p, exponent))


def _size(x: Array) -> Array:
    """|x|, but at most where every tail is 0."""
    return np.minimum(np.abs(x), x.dtype.type(_EDGE[x.dtype.type]))


def _tail(x: Array) -> Array:
    """erfc(|x|)."""
    a = _size(x)
    return _decay(erfcx(a), *_product(a, a))


def _small_erf(x: Array) -> Array:
    near = np.clip(x, -0.5, 0.5)
    return near * _polynomial(_SERIES[x.dtype.type], near * near)


def erf(x: Array) -> Array:
    return np.where(np.abs(x) < 0.5, _small_erf(x), np.copysign(1 - _tail(x), x))


def erfc(x: Array) -> Array:
    tail = _tail(x)
    return np.where(np.abs(x) < 0.5, 1 - _small_erf(x), np.where(x > 0, tail, 2 - tail))


def erf_slope(x: Array) -> Array:
    a = _size(x)
    factor = np.full_like(a, tables.TWO_OVER_SQRT_PI_HIGH)
    return _decay(factor, *_product(a, a))


def erfc_slope(x: Array) -> Array:
    return -erf_slope(x)


def _half_tail(x: Array, factor: Callable[[Array, Array], Array]) -> Array:
    """factor(|x|, erfcx(|x|/sqrt 2)/2) exp(-x^2/2)."""
    kind = x.dtype.type
    a = _size(x)
    root = kind(tables.SQRT_HALF_HIGH)
    w, low = _product(a, np.full_like(a, root))
    low = low + a * kind((tables.SQRT_HALF_HIGH - float(root)) + tables.SQRT_HALF_LOW)
    e = kind(0.5) * erfcx(w, low)
    return _decay(factor(a, e), *_product(a, kind(0.5) * a))


def gelu(x: Array) -> Array:
    lost = _half_tail(x, lambda a, e: a * e)
    return np.where(x < 0, -lost, x - lost)


def gelu_slope(x: Array) -> Array:
    density = x.dtype.type(tables.DENSITY_HIGH)
    term = _half_tail(x, lambda a, e: e - a * density)
    return np.where(x < 0, term, 1 - term)


def _argument(a: Array) -> tuple[Array, Array, Array]:
    """v(a) as a sum, and a v'(a)."""
    kind: Any = a.dtype.type
    cubic, linear = kind(tables.TANH_CUBIC_HIGH), kind(tables.TANH_LINEAR_HIGH)
    square, square_low = _product(a, a)
    term, term_low = _product(np.full_like(a, cubic), square)
    term_low = (
        term_low
        + cubic * square_low
        + square * kind((tables.TANH_CUBIC_HIGH - float(cubic)) + tables.TANH_CUBIC_LOW)
    )
    total = linear + term
    virtual = total - linear
    total_low = (linear - (total - virtual)) + (term - virtual) + term_low
    total_low = total_low + kind((tables.TANH_LINEAR_HIGH - float(linear)) + tables.TANH_LINEAR_LOW)
    v, low = _product(a, total)
    return v, low + a * total_low, a * (linear + 3 * term)


def gelu_tanh(x: Array) -> Array:
    a = _size(x)
    v, low, _ = _argument(a)
    denominator = 1 + _decay(np.ones_like(a), v, low)
    return np.where(x < 0, -_decay(a / denominator, v, low), x / denominator)


def gelu_tanh_slope(x: Array) -> Array:
    a = _size(x)
    v, low, steepness = _argument(a)
    denominator = 1 + _decay(np.ones_like(a), v, low)
    term = _decay((1 - steepness / denominator) / denominator, v, low)
    return np.where(x < 0, term, 1 - term)
