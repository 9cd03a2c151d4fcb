"""The float64 tier of activations that are formulas, for sweeps: one vectorised kernel each.

Errors in u = 2^-53, from EXP_FAST_ERROR 4, EXPM1_FAST_ERROR 8, softplus 13 (`fast`), one for each
further operation and constant. x is a float32, so that x + 3 is rounded only where |x| < 2^-29:
  hardsigmoid  (x + 3) / 6                                                              2
  hardswish    x (x + 3) / 6                                                            3
  softsign     x / (1 + |x|)                                                            2
  selu         λ x: 2; λα (e^x - 1): 8, 1, 1                                            10
  log_sigmoid  -softplus(-x)                                                            13
  mish         x n / d, e = e^-|x|, with the weights that the terms of a sum have in it:
               x >= 0: n = 1 + 2 e: 4 2/3 + 1; d = n + 2 e²: (3/5) 3.7 + (2/5) 9 + 1    12.5
               x < 0:  n = e (e + 2): 4 + (4/3 + 1) + 1; d = n + 2: (3/5) 7.4 + 1       14.8
The zeros have the signs that the formulas give.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.elementary.exponential import exp_fast, expm1_fast
from refkernels.kernels.elementary.logarithm import log1p_fast

_CUT = 150.0  # 150 e^-150 = 2^-209
_LAMBDA = 1.0507009873554804934193349852946
_LAMBDA_ALPHA = 1.7580993408473768599402175208123


@inner
def _within(x: Any, largest: Any) -> Any:
    return largest if x > largest else x


@njit(nogil=True)
def hardsigmoid(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        y = (v + 3.0) / 6.0
        y = 0.0 if v <= -3.0 else y
        hi[i] = 1.0 if v >= 3.0 else y


@njit(nogil=True)
def hardswish(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        y = v * (v + 3.0) / 6.0
        y = 0.0 if v <= -3.0 else y
        hi[i] = v if v >= 3.0 else y


@njit(nogil=True)
def softsign(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        y = v / (1.0 + abs(v))
        y = 1.0 if v == math.inf else y
        hi[i] = -1.0 if v == -math.inf else y


@njit(nogil=True)
def selu(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        y = _LAMBDA_ALPHA * expm1_fast(-_within(abs(v), _CUT))
        y = y if v < 0.0 else _LAMBDA * v
        hi[i] = 0.0 if v == 0.0 else y


@njit(nogil=True)
def log_sigmoid(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        y = (v if v < 0.0 else 0.0) - log1p_fast(exp_fast(-_within(abs(v), _CUT)))
        y = 0.0 if v == math.inf else y
        hi[i] = v if v == -math.inf else y


@njit(nogil=True)
def mish(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        c = -_CUT if v < -_CUT else v
        e = exp_fast(-_within(abs(c), _CUT))
        n = e * (e + 2.0) if v < 0.0 else 1.0 + 2.0 * e
        d = n + (2.0 if v < 0.0 else 2.0 * e * e)
        y = c * (n / d)
        y = v if v == math.inf else y
        hi[i] = -0.0 if v == -math.inf else y


_KERNELS: tuple[tuple[Callable[[Any, Any], None], float], ...] = (
    (hardsigmoid, 2.0**-51),
    (hardswish, 2.0**-51),
    (softsign, 2.0**-51),
    (selu, 2.0**-49),
    (log_sigmoid, 2.0**-49),
    (mish, 2.0**-49),
)
FAST = {kernel.__name__: Fast(kernel, error) for kernel, error in _KERNELS}
