"""Right functions of one number: the library's, and formulas that use other functions, in float64.

Names that end in "_wide" are for float64 alone: in a narrower format they would lose digits.
"""

import math

import numpy as np
from _ways import in_kind as _k
from _ways import kernels

_LN2, _LN10, _PI = math.log(2.0), math.log(10.0), math.pi
_ROOT = math.sqrt(2.0 / _PI)
_ERF = np.vectorize(math.erf, otypes=[np.float64])
_ERFC = np.vectorize(math.erfc, otypes=[np.float64])


def _of(function, x):
    return function(x) if x.size else np.zeros(x.shape)


def _beyond(x, limit, y):
    """y, and the limit function's value where x is not finite."""
    return np.where(np.isfinite(x), y, limit(x)).astype(x.dtype)


# --- exponentials and logarithms ----------------------------------------------------------------


def _by_sinh(x):
    near = np.maximum(x, -99)
    return _beyond(x, np.expm1, 2 * np.sinh(near / 2) * np.exp(near / 2))


def _parts(function, step):
    """The function of the significand, plus the exponent times that of 2."""

    def formula(x):
        m, e = np.frexp(x)
        below = m < math.sqrt(0.5)
        return function(np.where(below, 2 * m, m)) + (e - below) * step

    return formula


def _kahan(x):
    u = 1 + x
    quotient = np.log(u) * (x / np.where(u == 1, 1, u - 1))
    return _beyond(x, np.log1p, np.where(u == 1, x, quotient))


# --- hyperbolic and logistic --------------------------------------------------------------------


def _by_expm1(x):
    u = np.expm1(np.minimum(np.abs(x), 700))
    return _beyond(x, np.sinh, np.copysign((u + u / (u + 1)) / 2, x))


def _tanh_by_expm1(x):
    u = np.expm1(2 * np.minimum(np.abs(x), 40))
    return np.copysign(u / (u + 2), x)


def _sigmoid_pieces(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, _k(x, 1)) / (1 + e)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _silu_pieces(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, x * e, x) / (1 + e)


def _softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def _softplus_below(x):
    return np.where(x <= 20, np.log1p(np.exp(np.minimum(x, 20))), x)


def _inner(x):
    return _k(x, _ROOT) * (x + _k(x, 0.044715) * x * x * x)


# --- trigonometric ------------------------------------------------------------------------------


def _halves(x):
    return 2 * np.sin(x / 2) * np.cos(x / 2)


def _turns(x):
    """x - 2 k in [-1, 1], which is exact; -0 stays."""
    return np.where(x == 0, x, x - 2 * np.rint(x / 2))


def _sinpi(x):
    r = _turns(x)
    near = np.where(np.abs(r) > 0.5, np.copysign(1, r) - r, r)
    return np.sin(_k(x, _PI) * near).astype(x.dtype)


def _sinpi_by_octants(x):
    r = _turns(x)
    near = np.abs(np.where(np.abs(r) > 0.5, np.copysign(1, r) - r, r))
    y = np.where(near > 0.25, np.cos(_k(x, _PI) * (_k(x, 0.5) - near)), np.sin(_k(x, _PI) * near))
    return np.copysign(y, r).astype(x.dtype)


def _cospi(x):
    return np.sin(_k(x, _PI) * (_k(x, 0.5) - np.abs(_turns(x)))).astype(x.dtype)


def _cospi_by_octants(x):
    r = np.abs(_turns(x))
    far = r > 0.5
    near = np.where(far, 1 - r, r)
    y = np.where(near > 0.25, np.sin(_k(x, _PI) * (_k(x, 0.5) - near)), np.cos(_k(x, _PI) * near))
    return np.where(far, -y, y).astype(x.dtype)


globals().update(
    kernels(
        {
            "exp": {"library": np.exp, "exp2_wide": lambda x: np.exp2(x / _LN2)},
            "exp2": {"library": np.exp2, "exp_wide": lambda x: np.exp(x * _LN2)},
            "expm1": {"library": np.expm1, "sinh_wide": _by_sinh},
            "log": {
                "library": np.log, "log2_wide": lambda x: np.log2(x) * _LN2,
                "parts_wide": _parts(np.log, _LN2),
            },
            "log2": {"library": np.log2, "log_wide": lambda x: np.log(x) / _LN2},
            "log10": {
                "library": np.log10, "log_wide": lambda x: np.log(x) / _LN10,
            },
            "log1p": {"library": np.log1p, "kahan_wide": _kahan},
            "sinh": {"library": np.sinh, "expm1_wide": _by_expm1},
            "cosh": {
                "library": np.cosh, "sum_wide": lambda x: (np.exp(x) + np.exp(-x)) / 2,
                "sinh_wide": lambda x: 1 + 2 * np.square(np.sinh(x / 2)),
            },
            "tanh": {"library": np.tanh, "expm1_wide": _tanh_by_expm1},
            "sigmoid": {
                "quotient": _sigmoid, "pieces": _sigmoid_pieces,
                "tanh": lambda x: (1 + np.tanh(x / 2)) / 2,
            },
            "silu": {
                "quotient": lambda x: x / (1 + np.exp(-x)), "pieces": _silu_pieces,
                "product": lambda x: x * _sigmoid(x),
            },
            "softplus": {
                "apart": _softplus, "below": _softplus_below,
                "logaddexp_wide": lambda x: np.logaddexp(x, 0),
            },
            "sqrt": {
                "library": np.sqrt,
                "power_wide": lambda x: np.where(x > 0, np.power(np.abs(x), 0.5), np.sqrt(x)),
            },
            "rsqrt": {
                "quotient": lambda x: 1 / np.sqrt(x),
                "root_wide": lambda x: np.where(x > 0, np.sqrt(1 / np.abs(x)), 1 / np.sqrt(x)),
            },
            "reciprocal": {
                "quotient": lambda x: 1 / x, "power_wide": lambda x: np.power(x, -1.0),
            },
            "erf": {
                "library_wide": lambda x: _of(_ERF, x), "odd_wide": lambda x: -_of(_ERF, -x),
                "complement_wide": lambda x: np.where(
                    np.abs(x) < 0.5, _of(_ERF, x), np.copysign(1 - _of(_ERFC, np.abs(x)), x)
                ),
            },
            "erfc": {
                "library_wide": lambda x: _of(_ERFC, x),
                "below_wide": lambda x: np.where(x < 0, 2 - _of(_ERFC, -x), _of(_ERFC, x)),
                "complement_wide": lambda x: np.where(x < 0.25, 1 - _of(_ERF, x), _of(_ERFC, x)),
            },
            "gelu_tanh": {
                "tanh": lambda x: _k(x, 0.5) * x * (1 + np.tanh(_inner(x))),
                "quotient": lambda x: x / (1 + np.exp(-2 * _inner(x))),
            },
            "sin": {
                "library": np.sin, "halves_wide": _halves,
                "complex_wide": lambda x: np.where(x == 0, x, np.exp(1j * x).imag),
            },
            "cos": {"library": np.cos, "complex_wide": lambda x: np.exp(1j * x).real},
            "tan": {"library": np.tan, "quotient_wide": lambda x: np.sin(x) / np.cos(x)},
            "asin": {
                "library": np.arcsin,
                "atan2_wide": lambda x: np.arctan2(x, np.sqrt((1 - x) * (1 + x))),
            },
            "acos": {
                "library": np.arccos,
                "atan2_wide": lambda x: np.arctan2(np.sqrt((1 - x) * (1 + x)), x),
            },
            "atan": {
                "library": np.arctan, "atan2_wide": lambda x: np.arctan2(x, np.ones_like(x)),
                "asin_wide": lambda x: _beyond(x, np.arctan, np.arcsin(x / np.hypot(1, x))),
            },
            "sinpi": {"halves": _sinpi, "octants": _sinpi_by_octants},
            "cospi": {"sine": _cospi, "octants": _cospi_by_octants},
        }
    )
)  # fmt: skip
