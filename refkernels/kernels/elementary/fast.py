"""The float64 tier of every function here: one vectorised kernel each, with its proven bound.

Errors in u = 2^-53, from EXP_FAST_ERROR 4, EXPM1_FAST_ERROR 8, LOG_FAST_ERROR 8, one for each
further operation, none for products with powers of two:
  exp2      r = x - n exactly, r ln 2 rounded once, as exp's                            4
  sinh      (M + M / (1 + M)) / 2: 8, (1 + 1) / 2 for the quotient, 1                   10
  cosh      (E + 1 / E) / 2: 4, 1, 1                                                    6
  tanh      M / (M + 2), M = expm1 |2 x|: 8 (its weight is 2 / (M + 2)), 1, 1           10
  sigmoid   1 / (1 + exp(-x)): 4, 1, 1                                                  6
  silu      x sigmoid(x): 6, 1                                                          7
  softplus  max(x, 0) + log1p(exp(-|x|)): 4, 8, 1                                       13
  log2 log10  from e and log m: see `logarithm`                                         8
  sqrt 1; rsqrt 2 and second order; reciprocal 1
Arguments are cut where results leave 2^-200 .. 2^200, by comparisons that let NaN pass; specials,
and zeros with their signs, are put in by selects, which vectorise.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.eft import fma
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.elementary.exponential import (
    EXP_FAST_ERROR,
    EXPM1_FAST_ERROR,
    exp_fast,
    expm1_fast,
    expm1_reduced,
    power_of_two,
)
from refkernels.kernels.elementary.logarithm import (
    LOG_FAST_ERROR,
    log1p_fast,
    log1p_reduced,
    log_fast,
    split_fast,
)
from refkernels.kernels.elementary.tables import INV_LN2_HIGH, INV_LN10_HIGH, LN2_HIGH, LOG10_2_HIGH

_CUT = 150.0  # e^150 = 2^216, and 150 e^-150 = 2^-209
_CUT2 = 210.0
_MAGIC = 1.5 * 2.0**52


@inner
def confined(x: Any, low: Any, high: Any) -> Any:
    x = high if x > high else x
    return low if x < low else x


@inner
def _domain(x: Any, y: Any) -> Any:
    """y = log(x), or one of its kin, where x is positive and finite."""
    y = y if x > 0.0 else (-math.inf if x == 0.0 else math.nan)
    return x if x == math.inf else y


@njit(nogil=True)
def exp(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        y = exp_fast(confined(v, -_CUT, _CUT))
        y = v if v == math.inf else y
        hi[i] = 0.0 if v == -math.inf else y


@njit(nogil=True)
def exp2(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        c = confined(v, -_CUT2, _CUT2)
        t = c + _MAGIC
        y = (1.0 + expm1_reduced((c - (t - _MAGIC)) * LN2_HIGH)) * power_of_two(t)
        y = v if v == math.inf else y
        hi[i] = 0.0 if v == -math.inf else y


@njit(nogil=True)
def expm1(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        y = expm1_fast(confined(v, -_CUT, _CUT))
        y = v if v == math.inf else y
        hi[i] = v if v == 0.0 else y


@njit(nogil=True)
def log(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        hi[i] = _domain(v, log_fast(v))


@njit(nogil=True)
def log2(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        e, f, _ = split_fast(v)
        hi[i] = _domain(v, fma(log1p_reduced(f), INV_LN2_HIGH, e))


@njit(nogil=True)
def log10(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        e, f, _ = split_fast(v)
        hi[i] = _domain(v, fma(e, LOG10_2_HIGH, log1p_reduced(f) * INV_LN10_HIGH))


@njit(nogil=True)
def log1p(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        y = log1p_fast(v)
        y = y if v > -1.0 else (-math.inf if v == -1.0 else math.nan)
        y = v if v == math.inf else y
        hi[i] = v if v == 0.0 else y


@njit(nogil=True)
def sinh(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        m = expm1_fast(confined(abs(v), 0.0, _CUT))
        y = 0.5 * (m + m / (m + 1.0))
        y = -y if v < 0.0 else y
        hi[i] = v if (v == 0.0) | (abs(v) == math.inf) else y


@njit(nogil=True)
def cosh(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = abs(np.float64(x[i]))
        e = exp_fast(confined(v, 0.0, _CUT))
        y = 0.5 * (e + 1.0 / e)
        hi[i] = v if v == math.inf else y


@njit(nogil=True)
def tanh(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        m = expm1_fast(confined(2.0 * abs(v), 0.0, _CUT))
        y = m / (m + 2.0)
        y = -y if v < 0.0 else y
        hi[i] = v if v == 0.0 else y


@njit(nogil=True)
def sigmoid(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        y = 1.0 / (1.0 + exp_fast(confined(-v, -_CUT, _CUT)))
        hi[i] = 0.0 if v == -math.inf else y


@njit(nogil=True)
def silu(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        c = -_CUT if v < -_CUT else v
        y = c / (1.0 + exp_fast(confined(-c, -_CUT, _CUT)))
        hi[i] = -0.0 if v == -math.inf else y


@njit(nogil=True)
def softplus(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        y = log1p_fast(exp_fast(confined(-abs(v), -_CUT, 0.0)))
        y = (v if v > 0.0 else 0.0) + y
        hi[i] = 0.0 if v == -math.inf else y


@njit(nogil=True)
def sqrt(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        hi[i] = math.sqrt(np.float64(x[i]))


@njit(nogil=True)
def rsqrt(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        hi[i] = 1.0 / math.sqrt(np.float64(x[i]))


@njit(nogil=True)
def reciprocal(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        hi[i] = 1.0 / np.float64(x[i])


_KERNELS: tuple[tuple[Any, float], ...] = (
    (exp, EXP_FAST_ERROR),
    (exp2, EXP_FAST_ERROR),
    (expm1, EXPM1_FAST_ERROR),
    (log, LOG_FAST_ERROR),
    (log2, LOG_FAST_ERROR),
    (log10, LOG_FAST_ERROR),
    (log1p, LOG_FAST_ERROR),
    (sinh, 2.0**-49),
    (cosh, 2.0**-50),
    (tanh, 2.0**-49),
    (sigmoid, 2.0**-50),
    (silu, 2.0**-50),
    (softplus, 2.0**-49),
    (sqrt, 2.0**-53),
    (rsqrt, 2.0**-51),
    (reciprocal, 2.0**-53),
)
FAST = {kernel.__name__: Fast(kernel, error) for kernel, error in _KERNELS}
