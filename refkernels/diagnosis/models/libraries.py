"""Exponentials and logarithms of kernel libraries.

coarse       e^x = 2^n p(x - 0.693147 n), p of degree 5, in binary32 with FMA: nnacl's, MindSpore's
             on a CPU (mindspore-ai/mindspore, nnacl/fp32/exp_fp32.h), which errs by up to 4e-6 e^x
clamped      e^max(x, -m), m = 88.723 in binary32 and 709.784 in binary64, never 0: Eigen's,
             Paddle's on a CPU (libeigen, Eigen/src/Core/arch/Default/GenericPacketMathFunctions.h)
tabulated    E ln 2 + log(1 + z) + T_i,  z = r_i m - 1,  for the five leading bits i of the
             mantissa m of x = 2^(E - 127) m; r_i is 1/m to 1/32, and T_i = -log r_i - 127 ln 2

The last is oneDNN's on x86 (oneapi-src/oneDNN, jit_uni_eltwise_injector.cpp), and OneFlow's
log_softmax uses it: whole rows share its error. Near -88 the numbers of binary32 are 2^-17 apart,
so all logarithms of one i err by the rounding of T_i, up to 2^-18, and 127 times that of ln 2. The
gradient of log_softmax is e^y with the stored y: its relative error is that of y.
"""

from __future__ import annotations

import math

import numpy as np

from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.diagnosis.problem import Doubles
from refkernels.loss_ref.cross_entropy import from_output
from refkernels.loss_ref.likelihood import weighted_from_output
from refkernels.loss_ref.reduction import scaled
from refkernels.op import Op
from refkernels.ops.formula import Formula

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


_LOG_OF_2 = float(np.float32(math.log(2.0)))
_BIAS = 127
_STEPS = 32
_INVERSES = np.rint(_STEPS / (1.0 + (np.arange(_STEPS) + 0.5) / _STEPS)) / _STEPS  # r_i
_UPPER = np.arange(_STEPS) >= _STEPS // 2  # m / 2 takes the place of m, and E is one more
_LOGS = (-np.log(np.where(_UPPER, 2.0, 1.0) * _INVERSES) - _BIAS * math.log(2.0)).astype(np.float32)
_GRADIENTS: dict[str, Formula] = {  # by the log_softmax that the forward pass stored
    "cross_entropy": scaled(from_output),
    "masked_lm_loss": scaled(weighted_from_output),
}


def tabulated(x: Doubles) -> Doubles:
    """oneDNN's log of x in binary32, to the rounding of its polynomial; of normal numbers. The
    logarithms of others are NumPy's."""
    with np.errstate(all="ignore"):
        stored = x.astype(np.float32).astype(np.float64)
        normal = (stored > 0.0) & (stored < np.inf)
        half, exponent = np.frexp(np.where(normal, stored, 1.0))
        i = np.clip(np.floor((2.0 * half - 1.0) * _STEPS), 0, _STEPS - 1).astype(np.int64)
        z = 2.0 * half * _INVERSES[i] - 1.0
        scaled_exponent = (exponent - 1 + _BIAS + _UPPER[i]) * _LOG_OF_2
        result: Doubles = np.log1p(z) + (scaled_exponent + _LOGS[i]).astype(np.float32)
        return np.where(normal, result, np.log(stored))


def gradient(op: Op) -> Formula | None:
    """The formula of a gradient in which a logarithm of the forward pass is read."""
    if op.formulas is None or op.formulas.backward is None:
        return None
    return _GRADIENTS.get(op.name, op.formulas.backward.forms.get("from_output"))
