"""Condition numbers |x f'(x) / f(x)| and |x f''(x) / f'(x)|, float64 estimates, element by
element."""

from collections.abc import Callable

import numpy as np

from refkernels.kernels import answers
from refkernels.kernels.elementary import erf_tables
from refkernels.kernels.elementary.erf_tail import LIMIT
from refkernels.kernels.functions import FUNCTIONS
from refkernels.kernels.real_function import Doubles

Condition = Callable[[Doubles], Doubles]
_SLOPE = erf_tables.TWO_OVER_SQRT_PI_HIGH
_DENSITY = erf_tables.DENSITY_HIGH
_LINEAR, _CUBIC = erf_tables.TANH_LINEAR_HIGH, erf_tables.TANH_CUBIC_HIGH
_LARGEST = 1e40  # its sixth power is a float64
_TERMS = 11  # of erfcx about a node
_COLUMNS = erf_tables.ERFCX[:, : 2 * _TERMS : 2].T  # the high parts of their coefficients


def _sigmoid(x: Doubles) -> Doubles:
    e = np.exp(-np.abs(x))
    return np.where(x < 0.0, e, 1.0) / (1.0 + e)


def _always(value: float) -> Condition:
    return lambda x: np.full_like(x, value)


def _limit_at_zero(value: float, condition: Condition) -> Condition:
    """The condition, and its limit at 0."""
    return lambda x: np.where(x == 0.0, value, np.abs(condition(x)))


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


def _erfcx(w: Doubles) -> Doubles:
    """erfcx(w): about the nearest node of the oracle's table; beyond it two terms of the
    asymptotic series, good to 10^-6."""
    far, near = np.maximum(w, 30.0), np.where(w < LIMIT, w, 0.0)
    asymptotic = (1.0 - 0.5 / (far * far)) * (0.5 * _SLOPE) / far
    mantissa, octave = np.frexp(near)
    step = np.rint(np.where(near < 2.0, near * 16.0, mantissa * 32.0))
    row = step.astype(np.int64) + np.where(near < 2.0, 0, 16 * octave - 16)
    t = near - np.ldexp(step, np.where(near < 2.0, -4, octave - 5))
    return np.where(
        w < 30.0, np.polynomial.polynomial.polyval(t, _COLUMNS[:, row], tensor=False), asymptotic
    )


def _bounded(x: Doubles) -> Doubles:
    return np.minimum(np.abs(x), _LARGEST)


def _erf(x: Doubles) -> Doubles:
    a, values = _bounded(x), np.asarray(answers.values(FUNCTIONS["erf"], x))
    return np.where(x == 0.0, 1.0, a * _SLOPE * np.exp(-a * a) / np.abs(values))


def _erfc(x: Doubles) -> Doubles:
    a = _bounded(x)
    values = np.asarray(answers.values(FUNCTIONS["erfc"], -a))
    return np.where(x > 0.0, a * _SLOPE / _erfcx(a), a * _SLOPE * np.exp(-a * a) / values)


def _bell(x: Doubles) -> Doubles:
    return 2.0 * x * x


def _gelu_parts(x: Doubles) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """a = |x|; Phi(-a) and its slope's sum, both over exp(-a^2/2); exp(-a^2/2)."""
    a = _bounded(x)
    half = 0.5 * _erfcx(a * erf_tables.SQRT_HALF_HIGH)
    return a, half, half - a * _DENSITY, np.exp(-0.5 * a * a)


def _gelu(x: Doubles) -> Doubles:
    _, half, slope, decay = _gelu_parts(x)
    return np.where(x < 0.0, np.abs(slope) / half, (1.0 - decay * slope) / (1.0 - decay * half))


def _gelu_slope(x: Doubles) -> Doubles:
    a, _, slope, decay = _gelu_parts(x)
    curvature = a * _DENSITY * np.abs(2.0 - a * a)
    return np.where(x < 0.0, curvature / np.abs(slope), decay * curvature / (1.0 - decay * slope))


def _tanh_parts(x: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """a = |x|, e = exp(-v(a)) and v'(a)."""
    a = _bounded(x)
    decay = np.exp(-a * (_LINEAR + _CUBIC * a * a))
    return a, decay, _LINEAR + 3.0 * _CUBIC * a * a


def _gelu_tanh(x: Doubles) -> Doubles:
    a, decay, steepness = _tanh_parts(x)
    q = a * steepness / (1.0 + decay)
    return np.where(x < 0.0, np.abs(1.0 - q), 1.0 + decay * q)


def _gelu_tanh_slope(x: Doubles) -> Doubles:
    """f'' = s (1 - s) (2 v' + x ((1 - 2 s) v'^2 + v'')), v'' = 6 B x."""
    a, decay, steepness = _tanh_parts(x)
    share = (1.0 - decay) / (1.0 + decay)  # 1 - 2 s(-a)
    bend = 2.0 * steepness - a * (share * steepness * steepness - 6.0 * _CUBIC * a)
    curvature = a * np.abs(bend) / (1.0 + decay)
    q = a * steepness / (1.0 + decay)
    right = decay * curvature / (1.0 + decay * q)
    return np.where(x < 0.0, curvature / np.abs(1.0 - q), right)


_ROOT = _always(0.5)
_ONE = _always(1.0)
_COTH = _limit_at_zero(1.0, lambda x: x / np.tanh(x))
_TANH = _limit_at_zero(0.0, lambda x: x * np.tanh(x))
FORWARD: dict[str, Condition] = {
    "exp": np.abs,
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
    "erf": _erf,
    "erfc": _erfc,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}
SLOPE: dict[str, Condition] = {
    "exp": np.abs,
    "exp2": _octaves,
    "expm1": np.abs,
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
    "erf": _bell,
    "erfc": _bell,
    "gelu": _gelu_slope,
    "gelu_tanh": _gelu_tanh_slope,
}
