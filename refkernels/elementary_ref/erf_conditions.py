"""Condition numbers |x f'(x) / f(x)| and |x f''(x) / f'(x)| of erf, erfc, gelu and gelu_tanh, and
what kernels that add up a slope's terms may err more; float64 estimates, element by element.

gelu' = Phi + x phi and gelu_tanh' = s + x s (1 - s) v', s = sigmoid(v), have a zero beside
x = -3/4: a kernel that forms the sum errs by an ulp of each term there, however small the sum is.
erf' has no zero, but kernels round x^2 before they take its exponential.
"""

from collections.abc import Callable

import numpy as np

from refkernels.arithmetic.formats import Format, working_format
from refkernels.elementary_ref import erf_plain, erf_tables
from refkernels.elementwise.function import Doubles

Condition = Callable[[Doubles], Doubles]
_SLOPE = erf_tables.TWO_OVER_SQRT_PI_HIGH
_DENSITY = erf_tables.DENSITY_HIGH
_LINEAR, _CUBIC = erf_tables.TANH_LINEAR_HIGH, erf_tables.TANH_CUBIC_HIGH
_LARGEST = 1e40  # its sixth power is a float64


def _erfcx(w: Doubles) -> Doubles:
    """erfcx(w); beyond 30 two terms of its asymptotic series, good to 10^-6."""
    far = np.maximum(w, 30.0)
    asymptotic = (1.0 - 0.5 / (far * far)) * (0.5 * _SLOPE) / far
    return np.where(w < 30.0, erf_plain.erfcx(np.minimum(w, 30.0)), asymptotic)


def _magnitude(x: Doubles) -> Doubles:
    return np.minimum(np.abs(x), _LARGEST)


def _erf(x: Doubles) -> Doubles:
    a = _magnitude(x)
    rise = a * _SLOPE * np.exp(-a * a)
    return np.where(x == 0.0, 1.0, rise / np.abs(erf_plain.erf(x)))


def _erfc(x: Doubles) -> Doubles:
    a = _magnitude(x)
    left = a * _SLOPE * np.exp(-a * a) / erf_plain.erfc(-a)
    return np.where(x > 0.0, a * _SLOPE / _erfcx(a), left)


def _bell(x: Doubles) -> Doubles:
    return 2.0 * x * x


def _gelu_parts(x: Doubles) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """a = |x|; Phi(-a) and its slope's sum, both over exp(-a^2/2); exp(-a^2/2)."""
    a = _magnitude(x)
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
    a = _magnitude(x)
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


def _ulp(x: Doubles, format: Format) -> Doubles:
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    power = np.where(x == 0.0, format.emin, np.maximum(exponent - 1, format.emin))
    return np.ldexp(1.0, power - format.p + 1)


def _subnormal_ulp(values: Doubles, format: Format) -> Doubles:
    """Their ulp in the working format where they are subnormal there, at most the value; else 0."""
    work = working_format(format)
    return np.where(values < work.min_normal, np.minimum(values, work.min_subnormal), 0.0)


def _gelu_terms(x: Doubles, y: Doubles, ulp_y: Doubles, format: Format) -> Doubles:
    """ulp(Phi) + ulp(x phi) + |x| ulp(phi) where phi is subnormal; Phi = y / x."""
    a = _magnitude(x)
    phi = _DENSITY * np.exp(-0.5 * a * a)
    return _ulp(y / x, format) + _ulp(a * phi, format) + a * _subnormal_ulp(phi, format)


def _gelu_tanh_terms(x: Doubles, y: Doubles, ulp_y: Doubles, format: Format) -> Doubles:
    """ulp(s) + ulp(x s (1 - s) v') + |x v'| ulp(1 - s) where that is subnormal; s = y / x."""
    a, decay, steepness = _tanh_parts(x)
    rest = decay / (1.0 + decay)
    term = a * steepness * rest / (1.0 + decay)
    lost = a * steepness * _subnormal_ulp(rest, format)
    return _ulp(y / x, format) + _ulp(term, format) + lost


def _rounded_square(x: Doubles, y: Doubles, ulp_y: Doubles, format: Format) -> Doubles:
    """Kernels form exp(-x^2) from a rounded x^2, which moves it by u x^2 of itself."""
    a = _magnitude(x)
    return format.u * a * a * _SLOPE * np.exp(-a * a)


FORWARD: dict[str, Condition] = {
    "erf": _erf,
    "erfc": _erfc,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}
SLOPE: dict[str, Condition] = {
    "erf": _bell,
    "erfc": _bell,
    "gelu": _gelu_slope,
    "gelu_tanh": _gelu_tanh_slope,
}
EXTRA: dict[str, Callable[[Doubles, Doubles, Doubles, Format], Doubles]] = {
    "erf": _rounded_square,
    "erfc": _rounded_square,
    "gelu": _gelu_terms,
    "gelu_tanh": _gelu_tanh_terms,
}


def _bell_factors(x: Doubles, y: Doubles, slope: Doubles) -> tuple[Doubles | float, ...]:
    return _SLOPE, slope / _SLOPE


FACTORS: dict[str, Callable[[Doubles, Doubles, Doubles], tuple[Doubles | float, ...]]] = {
    "erf": _bell_factors,
    "erfc": _bell_factors,
}
