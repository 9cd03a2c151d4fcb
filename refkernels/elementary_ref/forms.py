"""The forms of functions made of others, and of every dy f'(x): formulas in `xp`.

The bound of an op is the largest of its forms'. All are rearrangements of the definition that stay
in range; `either` marks where kernels differ only in the order of operations. A library's own
functions (exp, erf, tanh, ...) are within its limit. y is what the forward pass returned.

A form may still lose every digit: 1 + erf(x / sqrt 2) and 1 + tanh cancel for x << 0, where the
result is tiny. They are the published definitions, and frameworks compute them. So they have names,
and a verdict says which form permits the error.

`store`: a kernel composed of ops stores their results in the storage format. The forms have it
where that costs roundings, but not where it would cost digits (1 + erf, 1 + tanh, the terms of a
slope that cancels): there 16-bit kernels compute in binary32.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from refkernels.elementwise.function import Form
from refkernels.elementwise.running import Primitive
from refkernels.kernels import answers
from refkernels.kernels.elementary import erf, erf_tables, tables
from refkernels.kernels.functions import ERF_LIMIT, FUNCTIONS, HALF
from refkernels.kernels.real_function import Doubles

LN2 = Fraction(tables.LN2_HIGH) + Fraction(tables.LN2_LOW)
LN10 = Fraction(tables.LN10_HIGH) + Fraction(tables.LN10_LOW)
DENSITY = Fraction(erf_tables.DENSITY_HIGH) + Fraction(erf_tables.DENSITY_LOW)  # 1 / sqrt(2 pi)
BELL = Fraction(erf_tables.TWO_OVER_SQRT_PI_HIGH) + Fraction(erf_tables.TWO_OVER_SQRT_PI_LOW)
CUBIC = Fraction(44715, 10**6)


# --- the library's functions, in float64 ------------------------------------------------------


def _growth(a: Doubles, r: Doubles, f: Doubles) -> Doubles:
    """e^(a + 2 r) (1 - e^-r) <= e^a r (1 + 3 r) for r <= 1/16."""
    near = f * r * (1.0 + 3.0 * r)
    if not np.any(r > 2.0**-4):
        return near
    return np.where(r > 2.0**-4, np.exp(a + 2.0 * r) * np.minimum(r, 1.0), near)


def _sigmoidal(a: Doubles, r: Doubles, f: Doubles) -> Doubles:
    """r / cosh² at the least |a|; 1 / cosh² a <= 4 e^(-2 |a|)."""
    decay = 4.0 * np.exp(-2.0 * np.maximum(np.abs(a) - 2.0 * r, 0.0))
    return np.minimum(r * np.minimum(decay, 1.0), 2.0)


def _bell(a: Doubles, r: Doubles, f: Doubles) -> Doubles:
    inner = np.maximum(np.abs(a) - 2.0 * r, 0.0)
    return np.minimum(r * (1.1284 * np.exp(-inner * inner)), 2.0)


def _logarithmic(a: Doubles, r: Doubles, f: Doubles) -> Doubles:
    """The spread for arguments >= 0."""
    return r / (1.0 + np.maximum(a - 2.0 * r, 0.0))


def _fast(kernel: Any) -> Any:
    """The values of a `Fast` kernel."""

    def value(a: Doubles) -> Doubles:
        result = np.empty(a.shape)
        kernel(a, result)
        return result

    return value


def _primitive(name: str, value: Any, spread: Any = None, **known: Any) -> Primitive:
    return Primitive(partial(answers.values, FUNCTIONS[name]), value, spread, **known)


_OF_ERF = {"saturates": True, "limit": ERF_LIMIT}
PRIMITIVES = {
    "exp": _primitive("exp", np.exp, _growth),
    "exp2": _primitive("exp2", np.exp2),
    "expm1": _primitive("expm1", np.expm1),
    "log1p": _primitive("log1p", np.log1p, _logarithmic),
    "sinh": _primitive("sinh", np.sinh),
    "cosh": _primitive("cosh", np.cosh),
    "tanh": _primitive("tanh", np.tanh, _sigmoidal, saturates=True),
    "erf": _primitive("erf", _fast(erf.erf_fast), _bell, **_OF_ERF),
    "erfc": _primitive("erfc", _fast(erf.erfc_fast), _bell, **_OF_ERF),
    "rsqrt": _primitive("rsqrt", lambda a: 1.0 / np.sqrt(a), limit=2.0),
}


def in_any_order(xp: Any, dy: Any, a: Any, b: Any) -> Any:
    """dy a b in any association; a step may be stored."""
    first, second = xp.store(dy * a) * b, xp.store(dy * b) * a
    return xp.either(xp.either(first, second), dy * xp.store(a * b))


def quotient(xp: Any, dy: Any, below: Any) -> Any:
    """dy / below, or times the reciprocal."""
    return xp.either(dy / below, dy * xp.store(1 / below))


# --- sigmoid, silu, softplus -------------------------------------------------------------------


def sigmoid_by_quotient(xp: Any, x: Any) -> Any:
    return 1 / xp.store(1 + xp.store(xp.exp(-x)))


def sigmoid_by_sides(xp: Any, x: Any) -> Any:
    e = xp.store(xp.exp(-abs(x)))
    return xp.where(x < 0, e, xp.number(1)) / xp.store(1 + e)


def sigmoid_by_tanh(xp: Any, x: Any) -> Any:
    return (1 + xp.tanh(x * xp.number(HALF))) * xp.number(HALF)


def stable_sigmoid(xp: Any, x: Any) -> Any:
    return xp.either(sigmoid_by_quotient(xp, x), sigmoid_by_sides(xp, x))


def _sigmoid_backward(xp: Any, dy: Any, y: Any) -> Any:
    return in_any_order(xp, dy, y, xp.store(1 - y))


def silu_by_quotient(xp: Any, x: Any) -> Any:
    return x / xp.store(1 + xp.store(xp.exp(-x)))


def _silu_backward(xp: Any, dy: Any, x: Any) -> Any:
    s = xp.store(stable_sigmoid(xp, x))
    slope = xp.store(1 + xp.store(x * xp.store(1 - s)))
    return in_any_order(xp, dy, s, slope)


def _silu_backward_by_y(xp: Any, dy: Any, x: Any) -> Any:
    s = xp.store(stable_sigmoid(xp, x))
    y = xp.store(xp.either(x * s, silu_by_quotient(xp, x)))
    ways = xp.either(y + xp.store(s * xp.store(1 - y)), s + xp.store(y * xp.store(1 - s)))
    return dy * xp.store(ways)


def softplus_by_sides(xp: Any, x: Any) -> Any:
    return xp.store(xp.log1p(xp.store(xp.exp(-abs(x))))) + xp.maximum(x, xp.number(0))


def softplus_below_20(xp: Any, x: Any) -> Any:
    far = x + xp.exp(-abs(x))
    return xp.where(x > 20, far, xp.log1p(xp.exp(xp.minimum(x, xp.number(20)))))


def _softplus_backward(xp: Any, dy: Any, x: Any) -> Any:
    z = xp.exp(xp.minimum(x, xp.number(20)))
    near = xp.either(xp.store(dy * z) / (1 + z), dy * xp.store(z / (1 + z)))
    by_sigmoid = dy * xp.store(stable_sigmoid(xp, x))
    return xp.either(by_sigmoid, xp.where(x > 20, by_sigmoid, near))


# --- gelu ---------------------------------------------------------------------------------------


def _at_normal(xp: Any, x: Any) -> Any:
    """x / sqrt 2."""
    return x / xp.sqrt(xp.number(2))


def normal_by_erf(xp: Any, x: Any) -> Any:
    return (1 + xp.erf(_at_normal(xp, x))) * xp.number(HALF)


def _half_of(xp: Any, x: Any, odd: Any) -> Any:
    """x (1 + odd) / 2, or distributed."""
    half = x * xp.number(HALF)
    return xp.either(x * ((1 + odd) * xp.number(HALF)), half + half * odd)


def normal_by_erfc(xp: Any, x: Any) -> Any:
    return xp.erfc(-_at_normal(xp, x)) * xp.number(HALF)


def _gelu_backward(normal: Any) -> Any:
    def formula(xp: Any, dy: Any, x: Any) -> Any:
        density = xp.exp(-(x * x * xp.number(HALF))) * xp.number(DENSITY)
        return dy * (normal(xp, x) + x * density)

    return formula


def _argument(xp: Any, x: Any) -> Any:
    """sqrt(2/pi) (x + 0.044715 x^3)."""
    k, c = xp.number(2 * DENSITY), xp.number(CUBIC)
    return xp.either(k * (x + c * (x * x * x)), k * x * (1 + c * (x * x)))


def _steepness(xp: Any, x: Any) -> Any:
    return xp.number(2 * DENSITY) * (1 + xp.number(3 * CUBIC) * (x * x))


def gelu_by_tanh(xp: Any, x: Any) -> Any:
    return _half_of(xp, x, xp.tanh(_argument(xp, x)))


def gelu_by_sigmoid(xp: Any, x: Any) -> Any:
    denominator = 1 + xp.exp(-(2 * _argument(xp, x)))
    return xp.either(x / denominator, x * (1 / denominator))


def _gelu_tanh_backward(xp: Any, dy: Any, x: Any) -> Any:
    t, v = xp.tanh(_argument(xp, x)), _steepness(xp, x)
    half, sech2 = xp.number(HALF), 1 - xp.square(t)
    right = xp.either((x * sech2) * v, (x * v) * sech2)
    return dy * ((1 + t) * half + right * half)


def _gelu_tanh_backward_by_sigmoid(xp: Any, dy: Any, x: Any) -> Any:
    s, v = stable_sigmoid_of(xp, 2 * _argument(xp, x)), 2 * _steepness(xp, x)
    complement = 1 - s
    return dy * (s + xp.either(x * (s * complement) * v, x * v * (s * complement)))


def stable_sigmoid_of(xp: Any, v: Any) -> Any:
    return 1 / (1 + xp.exp(-v))


# --- slopes of the others -------------------------------------------------------------------------


def _by_y(name: str, slope: Any = lambda xp, y: y) -> Any:
    """dy times a slope computed from the saved y = f(x)."""
    return lambda xp, dy, x: dy * xp.store(slope(xp, xp.store(xp.function(name, x))))


def _by_cosh(xp: Any, dy: Any, x: Any) -> Any:
    c = xp.store(1 / xp.function("cosh", x))
    return xp.either(dy * xp.store(c * c), xp.store(dy * c) * c)


def _log_backward(base: Fraction) -> Any:
    def formula(xp: Any, dy: Any, x: Any) -> Any:
        c = xp.number(base)
        first = xp.store(dy / x)
        ways = xp.either(quotient(xp, dy, xp.store(x * c)), xp.either(first / c, first * (1 / c)))
        ways = xp.either(ways, xp.store(dy / c) / x)
        return xp.either(
            ways, xp.store(dy * xp.store(1 / x)) * xp.either(1 / c, xp.number(1 / base))
        )

    return formula


def _sqrt_backward(xp: Any, dy: Any, x: Any) -> Any:
    y, half = xp.store(xp.sqrt(x)), xp.number(HALF)
    ways = xp.either(dy / (2 * y), xp.store(dy * half) / y)
    return xp.either(ways, xp.either(dy * xp.store(half / y), xp.store(dy / y) * half))


def _rsqrt_backward(xp: Any, dy: Any, x: Any) -> Any:
    y, half = xp.store(xp.either(xp.rsqrt(x), 1 / xp.sqrt(x))), xp.number(-HALF)
    square, first = xp.store(y * y), xp.store(dy * y)
    cube = xp.store(square * y)
    ways = xp.either(xp.store(first * y) * y * half, first * square * half)
    ways = xp.either(ways, xp.either(dy * cube * half, xp.store(dy * half) * cube))
    ways = xp.either(ways, xp.store(xp.store(xp.store(dy * half) * y) * y) * y)
    ways = xp.either(ways, xp.either(dy * xp.store(half * cube), first / x * half))
    return xp.either(ways, dy * half / (x * xp.sqrt(x)))


def _reciprocal_backward(xp: Any, dy: Any, x: Any) -> Any:
    y, square = xp.store(1 / x), xp.store(x * x)
    ways = xp.either(xp.store(-dy * y) * y, -dy * xp.store(y * y))
    return xp.either(ways, xp.either(quotient(xp, -dy, square), xp.store(-dy / x) / x))


def _bell_backward(sign: int) -> Any:
    def formula(xp: Any, dy: Any, x: Any) -> Any:
        c, e = xp.number(sign * BELL), xp.store(xp.exp(-xp.store(x * x)))
        return in_any_order(xp, dy, c, e)

    return formula


def _expm1_backward(xp: Any, dy: Any, x: Any) -> Any:
    y = xp.store(xp.expm1(x))
    by_y = xp.either(dy * xp.store(y + 1), xp.store(dy * y) + dy)
    return xp.either(dy * xp.store(xp.exp(x)), by_y)


def _exp2_backward(xp: Any, dy: Any, x: Any) -> Any:
    return in_any_order(xp, dy, xp.store(xp.function("exp2", x)), xp.number(LN2))


FORMS: dict[str, tuple[Form, ...]] = {
    "sigmoid": (
        Form("exp(x) / (1 + exp(x)) for x < 0, else 1 / (1 + exp(-x))", sigmoid_by_sides),
        Form("1 / (1 + exp(-x))", sigmoid_by_quotient),
        Form("(1 + tanh(x / 2)) / 2", sigmoid_by_tanh),
    ),
    "silu": (
        Form(
            "x exp(x) / (1 + exp(x)) for x < 0, else x / (1 + exp(-x))",
            lambda xp, x: x * sigmoid_by_sides(xp, x),
        ),
        Form("x / (1 + exp(-x))", silu_by_quotient),
        Form("x sigmoid(x)", lambda xp, x: x * xp.store(stable_sigmoid(xp, x))),
    ),
    "softplus": (
        Form("log1p(exp(-|x|)) + max(x, 0)", softplus_by_sides),
        Form("log1p(exp(x)) for x <= 20", softplus_below_20),
    ),
    "gelu": (
        Form("x erfc(-x / sqrt 2) / 2", lambda xp, x: x * normal_by_erfc(xp, x)),
        Form(
            "x (1 + erf(x / sqrt 2)) / 2", lambda xp, x: _half_of(xp, x, xp.erf(_at_normal(xp, x)))
        ),
    ),
    "gelu_tanh": (
        Form("x / (1 + exp(-2 v))", gelu_by_sigmoid),
        Form("x (1 + tanh v) / 2", gelu_by_tanh),
    ),
}
SLOPE_FORMS: dict[str, tuple[Form, ...]] = {
    "sigmoid": (
        Form(
            "dy y (1 - y), y = 1 / (1 + exp(-x))",
            lambda xp, dy, x: _sigmoid_backward(xp, dy, xp.store(stable_sigmoid(xp, x))),
        ),
        Form(
            "dy y (1 - y), y = (1 + tanh(x / 2)) / 2",
            lambda xp, dy, x: _sigmoid_backward(xp, dy, xp.store(sigmoid_by_tanh(xp, x))),
        ),
    ),
    "silu": (
        Form("dy s (1 + x (1 - s)), s = sigmoid(x)", _silu_backward),
        Form("dy (s + y (1 - s)), s = sigmoid(x), y = x s", _silu_backward_by_y),
    ),
    "softplus": (Form("dy exp(x) / (1 + exp(x)), dy sigmoid(x)", _softplus_backward),),
    "gelu": (
        Form("dy (erfc(-x / sqrt 2) / 2 + x phi(x))", _gelu_backward(normal_by_erfc)),
        Form("dy ((1 + erf(x / sqrt 2)) / 2 + x phi(x))", _gelu_backward(normal_by_erf)),
    ),
    "gelu_tanh": (
        Form("dy (s + x s (1 - s) 2 v'), s = sigmoid(2 v)", _gelu_tanh_backward_by_sigmoid),
        Form("dy ((1 + t) + x (1 - t^2) v') / 2, t = tanh v", _gelu_tanh_backward),
    ),
    "exp": (Form("dy y", _by_y("exp")),),
    "exp2": (Form("dy y ln 2", _exp2_backward),),
    "expm1": (Form("dy (y + 1), dy exp(x)", _expm1_backward),),
    "log": (Form("dy / x", quotient),),
    "log2": (Form("dy / (x ln 2)", _log_backward(LN2)),),
    "log10": (Form("dy / (x ln 10)", _log_backward(LN10)),),
    "log1p": (Form("dy / (1 + x)", lambda xp, dy, x: quotient(xp, dy, xp.store(1 + x))),),
    "sinh": (Form("dy cosh(x)", _by_y("cosh")),),
    "cosh": (Form("dy sinh(x)", _by_y("sinh")),),
    "tanh": (
        Form("dy / cosh(x)^2", _by_cosh),
        Form("dy (1 - y^2)", _by_y("tanh", lambda xp, y: 1 - xp.store(xp.square(y)))),
    ),
    "sqrt": (Form("dy / (2 y)", _sqrt_backward),),
    "rsqrt": (Form("-dy y^3 / 2", _rsqrt_backward),),
    "reciprocal": (Form("-dy y^2, -dy / x^2", _reciprocal_backward),),
    "erf": (Form("dy 2 / sqrt(pi) exp(-x^2)", _bell_backward(1)),),
    "erfc": (Form("-dy 2 / sqrt(pi) exp(-x^2)", _bell_backward(-1)),),
}
