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
from typing import Any

import numpy as np

from refkernels.arithmetic.eft import fast_two_sum, fma, two_prod, two_sum
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.filling import filled
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.elementary.exponential import exp_fast, expm1_fast
from refkernels.kernels.elementary.fast import confined
from refkernels.kernels.elementary.logarithm import log1p_fast

_CUT = 150.0  # 150 e^-150 = 2^-209
_LAMBDA = 1.0507009873554804934193349852946
_LAMBDA_ALPHA = 1.7580993408473768599402175208123


@inner
def _gated(v: Any, w: Any, top: Any) -> Any:
    """w (v + 3) / 6 as high + low, with a bound on the error of low, which alone is rounded, four
    times; 0 for v <= -3, top for v >= 3. w is 1 or a float32 number: nothing underflows."""
    s, e = two_sum(v, 3.0)
    p, q = two_prod(w, s)
    y = p / 6.0
    rest = q + w * e
    low = (fma(-6.0, y, p) + rest) / 6.0
    radius = (abs(rest) + abs(low) + abs(w * e)) * 2.0**-50
    inside = (v > -3.0) & (v < 3.0)
    y = 0.0 if v <= -3.0 else (top if v >= 3.0 else y)
    return y, low if inside else 0.0, radius if inside else 0.0


@njit(nogil=True)
def hardsigmoid(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        hi[i] = _gated(np.float64(x[i]), 1.0, 1.0)[0]


@njit(nogil=True)
def hardswish(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v = np.float64(x[i])
        hi[i] = _gated(v, v, v)[0]


@inner
def gated(weighted: bool, x: Any) -> Any:
    """hardswish, where `weighted`, or hardsigmoid, of a float32 number as a double-double."""
    w = x if weighted else 1.0
    y, low, radius = _gated(x, w, w)
    hi, lo = fast_two_sum(y, low)
    return hi, lo, radius, 0


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
        y = _LAMBDA_ALPHA * expm1_fast(confined(-abs(v), -_CUT, 0.0))
        y = y if v < 0.0 else _LAMBDA * v
        hi[i] = 0.0 if v == 0.0 else y


@njit(nogil=True)
def log_sigmoid(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        y = (v if v < 0.0 else 0.0) - log1p_fast(exp_fast(confined(-abs(v), -_CUT, 0.0)))
        y = 0.0 if v == math.inf else y
        hi[i] = v if v == -math.inf else y


@njit(nogil=True)
def mish(x: Any, hi: Any) -> None:
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        c = -_CUT if v < -_CUT else v
        e = exp_fast(confined(-abs(c), -_CUT, 0.0))
        n = e * (e + 2.0) if v < 0.0 else 1.0 + 2.0 * e
        d = n + (2.0 if v < 0.0 else 2.0 * e * e)
        y = c * (n / d)
        y = v if v == math.inf else y
        hi[i] = -0.0 if v == -math.inf else y


_KERNELS: tuple[tuple[Any, ...], ...] = (
    (hardsigmoid, 2.0**-51, filled(gated, False)),
    (hardswish, 2.0**-51, filled(gated, True)),
    (softsign, 2.0**-51),
    (selu, 2.0**-49),
    (log_sigmoid, 2.0**-49),
    (mish, 2.0**-49),
)
FAST = {kernel.__name__: Fast(kernel, *rest) for kernel, *rest in _KERNELS}
