"""Condition numbers |x f'(x) / f(x)| and |x f''(x) / f'(x)|, float64 estimates, element by
element."""

from collections.abc import Callable

import numpy as np

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
    s, complement = _sigmoid(x), _sigmoid(-x)
    return np.abs(x * complement * (2.0 + x * (complement - s)) / (1.0 + x * complement))


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
