"""Right activations and functions of two numbers: the forms that libraries use, and float64."""

import math

import numpy as np
from _ways import in_kind as _k
from _ways import kernels
from functions import _sigmoid_pieces as _sigmoid
from functions import _softplus

_SCALE, _ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
_SIXTH = 1 / 6


def _six(x):
    return np.clip(x + 3, 0, 6).astype(x.dtype)


def _hardswish_pieces(x):
    return np.where(x <= -3, x * 0, np.where(x >= 3, x, x * (x + 3) / 6)).astype(x.dtype)


def _log1p(x):
    return np.log1p(np.exp(-np.abs(x)))


def _mish(x):
    e = np.exp(-np.abs(x))
    n = np.where(x < 0, e * (e + 2), 1 + 2 * e)
    return x * (n / (n + 2 * np.where(x < 0, _k(x, 1), e * e)))


def _elu(x, alpha=1.0):
    return np.where(x > 0, x, _k(x, alpha) * np.expm1(np.minimum(x, 0)))


def _elu_summed(x, alpha=1.0):
    return np.maximum(x, 0) + _k(x, alpha) * np.expm1(np.minimum(x, 0))


def _selu(x):
    return _k(x, _SCALE) * np.where(x > 0, x, _k(x, _ALPHA) * np.expm1(np.minimum(x, 0)))


def _selu_joint(x):
    return np.where(x > 0, _k(x, _SCALE) * x, _k(x, _SCALE * _ALPHA) * np.expm1(np.minimum(x, 0)))


def _softsign(x):
    return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))).astype(x.dtype)


def _softsign_complement(x):
    return np.copysign(np.where(np.abs(x) > 1, 1 - 1 / (1 + np.abs(x)), np.abs(_softsign(x))), x)


# --- of two numbers -----------------------------------------------------------------------------


def _pow_by_exp2(x, exponent):
    plain = (x > 0) & np.isfinite(x) & np.isfinite(exponent)
    by_exp2 = np.exp2(np.where(plain, exponent, 0) * np.log2(np.where(plain, x, 1)))
    return np.where(plain, by_exp2, np.power(x, exponent))


def _atan2_by_atan(a, b):
    plain = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    size, other = np.abs(np.where(plain, a, 1)), np.abs(np.where(plain, b, 1))
    steep = size > other
    angle = np.arctan(np.where(steep, other, size) / np.where(steep, size, other))
    angle = np.where(steep, math.pi / 2 - angle, angle)
    angle = np.copysign(np.where(b < 0, math.pi - angle, angle), a)
    return np.where(plain, angle, np.arctan2(a, b))


def _hypot_scaled(a, b):
    h, low = np.maximum(np.abs(a), np.abs(b)), np.minimum(np.abs(a), np.abs(b))
    plain = np.isfinite(h) & (h > 0)
    ratio = np.where(plain, low, 0) / np.where(plain, h, 1)
    return np.where(plain, h * np.sqrt(1 + ratio * ratio), np.hypot(a, b)).astype(a.dtype)


globals().update(
    kernels(
        {
            "hardswish": {
                "clipped": lambda x: x * _six(x) / 6, "pieces": _hardswish_pieces,
                "multiplied": lambda x: x * _six(x) * _k(x, _SIXTH),
            },
            "hardsigmoid": {
                "clipped": lambda x: _six(x) / 6, "multiplied": lambda x: _six(x) * _k(x, _SIXTH),
                "scaled": lambda x: np.clip(x / 6 + _k(x, 0.5), 0, 1).astype(x.dtype),
            },
            "mish": {"fraction": _mish, "softplus": lambda x: x * np.tanh(_softplus(x))},
            "elu": {"pieces": _elu, "summed": _elu_summed},
            "selu": {"pieces": _selu, "joint": _selu_joint},
            "softsign": {"quotient": _softsign, "complement_wide": _softsign_complement},
            "log_sigmoid": {
                "apart": lambda x: np.minimum(x, 0) - _log1p(x),
                "softplus": lambda x: -_softplus(-x),
                "logaddexp_wide": lambda x: -np.logaddexp(0, -x),
            },
            "swiglu": {
                "silu": lambda a, b: a * _sigmoid(a) * b,
                "quotient_wide": lambda a, b: a / (1 + np.exp(-a)) * b,
            },
            "pow": {"library": lambda x, exponent: x**exponent, "exp2_wide": _pow_by_exp2},
            "atan2": {"library": lambda a, b: np.arctan2(a, b), "atan_wide": _atan2_by_atan},
            "hypot": {
                "library": lambda a, b: np.hypot(a, b), "scaled": _hypot_scaled,
                "squares_wide": lambda a, b: np.where(
                    np.isinf(a) | np.isinf(b), np.inf, np.sqrt(a * a + b * b)
                ),
            },
        }
    )
)  # fmt: skip
