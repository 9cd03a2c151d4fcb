"""Right GELUs: by erfc and by erf, with roundings in other places, fused, tiled, wider inside."""

import math

import numpy as np
from _ways import in_blocks, in_format

_ERFC = np.vectorize(math.erfc, otypes=[np.float64])
_ERF = np.vectorize(math.erf, otypes=[np.float64])
_ROOT = math.sqrt(0.5)


def _erfc(x):
    return _ERFC(x) if x.size else np.zeros(x.shape)


def _erf(x):
    erf = _ERF(x.astype(np.float64) * _ROOT) if x.size else np.zeros(x.shape)
    return erf.astype(x.dtype)


def float64_gelu(x):
    wide = x.astype(np.float64)
    return (0.5 * wide * _erfc(-wide * _ROOT)).astype(x.dtype)


def half_first_gelu(x):
    half = (x.dtype.type(0.5) * x).astype(np.float64)
    return (half * _erfc(-x.astype(np.float64) * _ROOT)).astype(x.dtype)


def normal_first_gelu(x):
    return x * (0.5 * _erfc(-x.astype(np.float64) * _ROOT)).astype(x.dtype)


def two_products_gelu(x):
    normal = _erfc(-x.astype(np.float64) * _ROOT).astype(x.dtype)
    return x.dtype.type(0.5) * x * normal


def rounded_argument_gelu(x):
    argument = -x * x.dtype.type(_ROOT)
    return x * (x.dtype.type(0.5) * _erfc(argument.astype(np.float64)).astype(x.dtype))


def divided_argument_gelu(x):
    argument = -x / x.dtype.type(math.sqrt(2.0))
    return x.dtype.type(0.5) * x * _erfc(argument.astype(np.float64)).astype(x.dtype)


def erf_gelu(x):
    one, half = x.dtype.type(1), x.dtype.type(0.5)
    return half * x * (one + _erf(x))


def both_signs_gelu(x):
    tail = (0.5 * _erfc(np.abs(x.astype(np.float64)) * _ROOT)).astype(x.dtype)
    return np.where(x < 0, x * tail, x * (x.dtype.type(1) - tail))


def half_plus_half_gelu(x):
    half = x.dtype.type(0.5)
    return x * (half + half * _erf(x))


def fused_gelu(x):
    half = (x.dtype.type(0.5) * x).astype(np.float64)
    return (half * _erf(x) + half).astype(x.dtype)


tiled_gelu = in_blocks(16)(rounded_argument_gelu)
float32_inside_gelu = in_format(np.float32, divided_argument_gelu)
