"""The exact tier: Arb's balls, and rational arithmetic for gradients with an algebraic slope.

Every expression keeps relative accuracy, whatever the argument, but at the zeros of slopes, which
the caller resolves by more precision.
"""

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from refkernels.elementwise.balls import of_arb, of_fraction
from refkernels.elementwise.function import Ball

_GUARD = 40  # an argument of 2^29 costs an exponential 30 bits


def _exp2(x: Any) -> Any:
    return (x * x.const_log2()).exp()


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + (-x).exp())


def _normal(x: Any) -> Any:
    """Phi(x), the distribution function of the normal distribution."""
    return (-x / type(x)(2).sqrt()).erfc() / 2


def _twice_argument(x: Any) -> tuple[Any, Any]:
    """v = 2 sqrt(2/pi) (x + 0.044715 x^3), and v'."""
    cubic, factor = type(x)(44715) / 10**6, 2 * (2 / x.pi()).sqrt()
    return factor * (x + cubic * x**3), factor * (1 + 3 * cubic * x**2)


def _gelu_tanh_slope(x: Any) -> Any:
    v, slope = _twice_argument(x)
    return _sigmoid(v) * (1 + x * slope * _sigmoid(-v))


def _softplus(x: Any) -> Any:
    return x + (-x).exp().log1p() if x > 0 else x.exp().log1p()


_EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: x.exp(),
    "exp2": _exp2,
    "exp2'": lambda x: x.const_log2() * _exp2(x),
    "expm1": lambda x: x.expm1(),
    "log": lambda x: x.log(),
    "log2": lambda x: x.log() / x.const_log2(),
    "log10": lambda x: x.log() / x.const_log10(),
    "log1p": lambda x: x.log1p(),
    "log'": lambda x: 1 / x,
    "log2'": lambda x: 1 / (x * x.const_log2()),
    "log10'": lambda x: 1 / (x * x.const_log10()),
    "log1p'": lambda x: 1 / (1 + x),
    "sinh": lambda x: x.sinh(),
    "cosh": lambda x: x.cosh(),
    "tanh": lambda x: x.tanh(),
    "tanh'": lambda x: 4 * _sigmoid(2 * x) * _sigmoid(-2 * x),
    "sigmoid": _sigmoid,
    "sigmoid'": lambda x: _sigmoid(x) * _sigmoid(-x),
    "silu": lambda x: x * _sigmoid(x),
    "silu'": lambda x: _sigmoid(x) * (1 + x * _sigmoid(-x)),
    "softplus": _softplus,
    "sqrt": lambda x: x.sqrt(),
    "sqrt'": lambda x: x.rsqrt() / 2,
    "rsqrt": lambda x: x.rsqrt(),
    "rsqrt'": lambda x: -x.rsqrt() / (2 * x),
    "reciprocal": lambda x: 1 / x,
    "reciprocal'": lambda x: -1 / (x * x),
    "erf": lambda x: x.erf(),
    "erf'": lambda x: 2 / x.pi().sqrt() * (-x * x).exp(),
    "erfc": lambda x: x.erfc(),
    "erfc'": lambda x: -2 / x.pi().sqrt() * (-x * x).exp(),
    "gelu": lambda x: x * _normal(x),
    "gelu'": lambda x: _normal(x) + x * (-x * x / 2).exp() / (2 * x.pi()).sqrt(),
    "gelu_tanh": lambda x: x * _sigmoid(_twice_argument(x)[0]),
    "gelu_tanh'": _gelu_tanh_slope,
}
SAME = {"exp'": "exp", "expm1'": "exp", "sinh'": "cosh", "cosh'": "sinh", "softplus'": "sigmoid"}


def ball(name: str) -> Callable[[float, int], Ball]:
    """(x, precision) -> the ball of the function of that name, a slope with an apostrophe."""
    return functools.partial(_ball, _EXPRESSIONS[SAME.get(name, name)])


def _ball(expression: Callable[[Any], Any], x: float, precision: int) -> Ball:
    return of_arb(expression, x, precision + _GUARD)


def _root(x: Fraction) -> Fraction | None:
    """sqrt(x) where it is rational."""
    top, bottom = math.isqrt(x.numerator), math.isqrt(x.denominator)
    exact = top * top == x.numerator and bottom * bottom == x.denominator
    return Fraction(top, bottom) if exact else None


def _over_root(top: Fraction, x: Fraction) -> Fraction | None:
    root = _root(x)
    return None if root is None else top / (2 * root)


_RATIONAL: dict[str, Callable[[Fraction, Fraction], Fraction | None]] = {
    "log": lambda dy, x: dy / x,
    "log1p": lambda dy, x: dy / (1 + x),
    "sqrt": _over_root,
    "rsqrt": lambda dy, x: _over_root(-dy / x, x),
    "reciprocal": lambda dy, x: -dy / (x * x),
}


def gradient(name: str) -> Callable[[float, float, int], Ball] | None:
    """(dy, x, precision) -> the ball of dy f'(x), for the functions with an algebraic slope."""
    if name not in _RATIONAL:
        return None
    return functools.partial(_gradient, _RATIONAL[name], ball(f"{name}'"))


def _gradient(
    rational: Callable[[Fraction, Fraction], Fraction | None],
    slope: Callable[[float, int], Ball],
    dy: float,
    x: float,
    precision: int,
) -> Ball:
    exact = rational(Fraction(dy), Fraction(x))
    if exact is not None:
        return of_fraction(exact, precision)
    top, bottom = dy.as_integer_ratio()
    mid, radius, exponent = slope(x, precision)
    return mid * top, radius * abs(top), exponent - (bottom.bit_length() - 1)
