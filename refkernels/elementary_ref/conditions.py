"""Condition numbers |x f'(x) / f(x)| and |x f''(x) / f'(x)|, what a framework's own formula of a
slope adds to its error, and the factors of a slope; float64 estimates, element by element.

The second kind: a framework that keeps y and forms f' from it (tanh: 1 - y^2) errs by |df'/dy| of
y's error, however small the slope is; per unit of the forward limit this is |df'/dy| ulp(y).
"""

from collections.abc import Callable

import numpy as np

from refkernels.arithmetic.formats import Format, working_format
from refkernels.elementwise.function import Doubles

Condition = Callable[[Doubles], Doubles]


def _sigmoid(x: Doubles) -> Doubles:
    e = np.exp(-np.abs(x))
    return np.where(x < 0.0, e, 1.0) / (1.0 + e)


def _always(value: float) -> Condition:
    return lambda x: np.full_like(x, value)


def _limit_at_zero(value: float, condition: Condition) -> Condition:
    """The condition, and its limit at 0."""
    return lambda x: np.where(x == 0.0, value, np.abs(condition(x)))


def _magnitude(x: Doubles) -> Doubles:
    return np.abs(x)


def _octaves(x: Doubles) -> Doubles:
    return np.abs(x) * np.log(2.0)


def _inverse_log(x: Doubles) -> Doubles:
    return 1.0 / np.abs(np.log(x))


def _silu(x: Doubles) -> Doubles:
    return np.abs(1.0 + x * _sigmoid(-x))


def _silu_slope(x: Doubles) -> Doubles:
    s, rest = _sigmoid(x), _sigmoid(-x)
    return np.abs(x * rest * (2.0 + x * (rest - s)) / (1.0 + x * rest))


def _softplus(x: Doubles) -> Doubles:
    return np.abs(x) * _sigmoid(x) / (np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def _tanh_slope(x: Doubles) -> Doubles:
    return np.abs(2.0 * x * np.tanh(x))


_ROOT = _always(0.5)
_ONE = _always(1.0)
_COTH = _limit_at_zero(1.0, lambda x: x / np.tanh(x))
_TANH = _limit_at_zero(0.0, lambda x: x * np.tanh(x))
FORWARD: dict[str, Condition] = {
    "exp": _magnitude,
    "exp2": _octaves,
    "expm1": _limit_at_zero(1.0, lambda x: x / np.expm1(-x)),
    "log": _inverse_log,
    "log2": _inverse_log,
    "log10": _inverse_log,
    "log1p": _limit_at_zero(1.0, lambda x: x / ((1.0 + x) * np.log1p(x))),
    "sinh": _COTH,
    "cosh": _TANH,
    "tanh": _limit_at_zero(1.0, lambda x: 2.0 * x / np.sinh(2.0 * x)),
    "sigmoid": lambda x: np.abs(x) * _sigmoid(-x),
    "silu": _silu,
    "softplus": _softplus,
    "sqrt": _ROOT,
    "rsqrt": _ROOT,
    "reciprocal": _ONE,
}
SLOPE: dict[str, Condition] = {
    "exp": _magnitude,
    "exp2": _octaves,
    "expm1": _magnitude,
    "log": _ONE,
    "log2": _ONE,
    "log10": _ONE,
    "log1p": lambda x: np.abs(x / (1.0 + x)),
    "sinh": _TANH,
    "cosh": _COTH,
    "tanh": _tanh_slope,
    "sigmoid": lambda x: np.abs(x * np.tanh(0.5 * x)),
    "silu": _silu_slope,
    "softplus": lambda x: np.abs(x) * _sigmoid(-x),
    "sqrt": _ROOT,
    "rsqrt": _always(1.5),
    "reciprocal": _always(2.0),
}

Extra = Callable[[Doubles, Doubles, Doubles, Format], Doubles]


Factors = Callable[[Doubles, Doubles, Doubles], tuple[Doubles | float, ...]]


def _from_y(slope_by_y: Callable[[Doubles], Doubles]) -> Extra:
    """|df'/dy| ulp(y); nothing where y is not finite, anything where it overflows the format."""

    def extra(x: Doubles, y: Doubles, ulp_y: Doubles, format: Format) -> Doubles:
        found = np.where(np.isfinite(ulp_y), np.abs(slope_by_y(y)) * ulp_y, 0.0)
        return np.where(np.isfinite(x) & (np.abs(y) > format.max), np.inf, found)

    return extra


def _silu_extra(x: Doubles, y: Doubles, ulp_y: Doubles, format: Format) -> Doubles:
    """s (1 + x (1 - s)) from a rounded s: |1 + x (1 - 2 s)| of its error, where ulp(s) <= 2 u s or
    s is subnormal; and, where the bracket cancels, two roundings of terms of its size."""
    s, rest = _sigmoid(x), _sigmoid(-x)
    near = np.clip(x, -1e4, 1e4)
    ulp = np.maximum(2.0 * format.u * s, np.minimum(working_format(format).min_subnormal, s))
    terms = format.u * s * (1.0 + np.abs(near) * rest)
    return ulp * np.abs(1.0 + near * (rest - s)) + terms


def _log_extra(base: float) -> Extra:
    """1 / (x ln b): half a subnormal of x ln b."""

    def extra(x: Doubles, y: Doubles, ulp_y: Doubles, format: Format) -> Doubles:
        work, product = working_format(format), x * np.log(base)
        lost = np.maximum(work.min_subnormal / 2.0, 2.0**-1074) / product / product
        return np.where((x > 0.0) & (product < work.min_normal), lost, 0.0)

    return extra


def _sqrt_extra(x: Doubles, y: Doubles, ulp_y: Doubles, format: Format) -> Doubles:
    return np.where((y > 0.0) & np.isfinite(y), (ulp_y / y) * (0.5 / y), 0.0)


EXTRA: dict[str, Extra] = {
    "log2": _log_extra(2.0),
    "log10": _log_extra(10.0),
    "exp2": _from_y(lambda y: np.full_like(y, np.log(2.0))),  # y ln 2
    "expm1": _from_y(np.ones_like),  # y + 1
    "tanh": _from_y(lambda y: 2.0 * y),  # 1 - y^2
    "sigmoid": _from_y(lambda y: 1.0 - 2.0 * y),  # y (1 - y)
    "silu": _silu_extra,
    "sqrt": _sqrt_extra,  # 1 / (2 y)
    "rsqrt": _from_y(lambda y: 1.5 * y * y),  # -y^3 / 2
    "reciprocal": _from_y(lambda y: 2.0 * y),  # -y^2
}


def _log_factors(base: float) -> Factors:
    return lambda x, y, slope: (np.abs(1.0 / x), 1.0 / np.log(base))


def _silu_factors(x: Doubles, y: Doubles, slope: Doubles) -> tuple[Doubles | float, ...]:
    s, rest = _sigmoid(x), _sigmoid(-x)
    near = np.clip(x, -1e4, 1e4)  # below, dy s is 0 and loses nothing
    doubt = 2.0**-7 * (1.0 + np.abs(near) * rest)  # where it cancels
    return s, np.abs(1.0 + near * rest) + doubt


FACTORS: dict[str, Factors] = {
    "exp2": lambda x, y, slope: (y, np.log(2.0)),
    "log2": _log_factors(2.0),
    "log10": _log_factors(10.0),
    "sigmoid": lambda x, y, slope: (y, 1.0),
    "silu": _silu_factors,
    "softplus": lambda x, y, slope: (slope, 1.0),
    "sqrt": lambda x, y, slope: (0.5, 2.0 * slope),
    "rsqrt": lambda x, y, slope: (0.5, y, y, y),
    "reciprocal": lambda x, y, slope: (y, y),
}
