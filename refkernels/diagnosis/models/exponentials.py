"""Exponentials of kernel libraries.

coarse    e^x = 2^n p(x - 0.693147 n), p of degree 5, in binary32 with FMA: nnacl's, MindSpore's on
          a CPU (mindspore-ai/mindspore, nnacl/fp32/exp_fp32.h), which errs by up to 4e-6 e^x
clamped   e^max(x, -m), m = 88.723 in binary32 and 709.784 in binary64, never 0: Eigen's, Paddle's
          on a CPU (libeigen, Eigen/src/Core/arch/Default/GenericPacketMathFunctions.h)
"""

from __future__ import annotations

import math

import numpy as np

from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.diagnosis.problem import Doubles

_LN2 = float(np.float32(0.693147))
_LOG2_E = float(np.float32(math.log2(math.e)))
_COEFFICIENTS = tuple(float(np.float32(1.0 / math.factorial(k))) for k in (5, 4, 3, 2, 1, 0))
CLAMPS = {BINARY32: 88.723, BINARY64: 709.784}


def coarse(x: Doubles, vector: bool) -> Doubles:
    """nnacl's exp of x in binary32, where a subnormal result is 0; in vectors n is x / ln 2 to the
    nearest integer, else x log2 e + 1/2 or - 1/2 is truncated."""
    rounded = _rounded(x)
    with np.errstate(all="ignore"):
        shifted = _rounded(_rounded(rounded * _LOG2_E) + np.copysign(0.5, rounded))
        n = np.clip(np.rint(_rounded(rounded / _LN2)) if vector else np.trunc(shifted), -127, 129)
        remainder = _rounded(rounded - n * _LN2)
        power = np.full_like(remainder, _COEFFICIENTS[0])
        for coefficient in _COEFFICIENTS[1:]:
            power = _rounded(power * remainder + coefficient)
        power = power * np.exp2(n)
    result = np.where(power < BINARY32.min_normal, 0.0, power)
    return np.where(n == 129, np.inf, np.where((n == -127) & ~np.isnan(x), 0.0, result))


def _rounded(x: Doubles) -> Doubles:
    return x.astype(np.float32).astype(np.float64)


def clamped(x: Doubles, format: Format) -> Doubles:
    """Eigen's exp."""
    with np.errstate(over="ignore"):
        result: Doubles = np.exp(np.maximum(x, -CLAMPS[format]))
    return result
