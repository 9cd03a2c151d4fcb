"""gelu_tanh(x) = x sigmoid(v), v = 2 sqrt(2/pi) (x + 0.044715 x^3): fast tier and values.

sqrt(2/pi) is the real number and 0.044715 the decimal rational; x/2 (1 + tanh(v/2)) is the same.
For a = |x|, v = v(a) > 0, e = exp(-v):
    gelu_tanh(x) = x e/(1 + e) for x < 0, x/(1 + e) for x > 0
Errors, U = 2^-53. v = a (A + B a^2): B a^2 1 + 5, A 1, the sum 3, the product 2: 11.1 U^2 of v.
e: 5 U^2 + 11.1 U^2 v (FAR_ERROR beyond FAR). e/(1 + e) moves by at most that, 1 + e 2, the quotient
9.9, the product with x 2 -> (19 + 11.1 v) U^2.
Tiny x: as in gelu, by the same terms; the next ones are 0.17 x^2 of them.
Fast: v by two roundings and rounded A, B has 2.5 units: 2^-44.5 of e where v <= 142, exp 2^-51,
four more roundings -> FAST_GELU_TANH_BOUND 2^-44; arguments are cut at -12.5: results below 2^-226.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import (
    U,
    dd_add,
    dd_add_double,
    dd_div,
    dd_mul,
    dd_mul_double,
)
from refkernels.arithmetic.eft import fma, two_prod
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.elementary.erf_tables import (
    DENSITY_HIGH,
    TANH_CUBIC_HIGH,
    TANH_CUBIC_LOW,
    TANH_LINEAR_HIGH,
    TANH_LINEAR_LOW,
)
from refkernels.kernels.elementary.exponential import FAR, FAR_ERROR, exp_dd, exp_fast
from refkernels.kernels.elementary.results import (
    LINEAR,
    exactly,
    place,
    tiny_product,
    vanishing,
)

FAST_GELU_TANH_BOUND = 2.0**-44
VALUE, VALUE_PER_V = 20 * U**2, 12 * U**2
FARTHEST = 2.0**10  # beyond it results are below 2^VANISHING: v = 7.66e7, x e^-v = 2^-1.1e8
CERTAIN = 20.0  # v(20) = 602.8
TINIEST = 2.0**-850  # above exp(-v) (1 + q) there
NEGLIGIBLE = -900  # powers of two: e beyond it does not change 1 + e


@inner
def _exponential(a: Any) -> Any:
    """exp(-v(a)) as (high, low, k), with v in double-double."""
    sh, sl = two_prod(a, a)
    vh, vl = dd_mul(TANH_CUBIC_HIGH, TANH_CUBIC_LOW, sh, sl)
    vh, vl = dd_add(TANH_LINEAR_HIGH, TANH_LINEAR_LOW, vh, vl)
    vh, vl = dd_mul_double(vh, vl, a)
    eh, el, k = exp_dd(-vh, -vl)
    return eh, el, k, vh


@inner
def _one_plus(eh: Any, el: Any, k: int) -> Any:
    """1 + (eh + el) 2^k for k <= 0."""
    if k < NEGLIGIBLE:
        return 1.0, 0.0
    factor = math.ldexp(1.0, k)
    return dd_add_double(eh * factor, el * factor, 1.0)


@inner
def gelu_tanh(x: Any) -> Any:
    """gelu_tanh(x) as (high, low, radius, scale)."""
    if x == 0.0 or not math.isfinite(x):
        return exactly(-0.0 if x == -math.inf else x)
    if abs(x) < LINEAR:
        return tiny_product(0.5, DENSITY_HIGH, x, 1)
    if x > CERTAIN:
        return x, -x * (0.5 * TINIEST), x * (0.5 * TINIEST), 0
    a = abs(x)
    if a > FARTHEST:
        return vanishing(-1.0)
    eh, el, k, v = _exponential(a)
    dh, dl = _one_plus(eh, el, k)
    error = VALUE + VALUE_PER_V * v + (FAR_ERROR if v > FAR else 0.0)
    if x < 0.0:
        high, low = dd_div(eh, el, dh, dl)
        high, low = dd_mul_double(high, low, -a)
        return place(high, low, -high * error, k)
    high, low = dd_div(x, 0.0, dh, dl)
    return high, low, high * error, 0


@njit(nogil=True)
def gelu_tanh_fast(x: Any, hi: Any) -> None:
    """`Fast` of gelu_tanh: relative error <= FAST_GELU_TANH_BOUND for float32 x."""
    full_width()
    for i in range(x.size):
        w: Any = np.float64(x[i])
        a = abs(w)
        a = a if a < 12.5 else 12.5
        e = exp_fast(-a * fma(TANH_CUBIC_HIGH, a * a, TANH_LINEAR_HIGH))
        sigmoid = 1.0 / (1.0 + e)
        y = w * sigmoid if w >= 0.0 else -a * (e * sigmoid)
        y = -0.0 if w == -math.inf else y
        hi[i] = y if w == w else w
