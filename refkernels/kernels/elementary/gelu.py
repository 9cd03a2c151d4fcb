"""gelu(x) = x Phi(x) = x erfc(-x/sqrt 2)/2: the float64 tier, values and slopes as double-doubles.

With Q = exp(-x^2/2) erfcx(|x|/sqrt 2)/2 (erf_tail.py), U = 2^-53, x^2/2 exact, |x|/sqrt 2 to 3 U^2:
    gelu(x) = x Q for x < 0, x (1 - Q) for x > 0: nothing cancels.   tail's error, 2 U^2 a product
    gelu'(x) = exp(-x^2/2) D for x < 0, 1 - exp(-x^2/2) D for x > 0,
    D = erfcx(|x|/sqrt 2)/2 - |x|/sqrt(2 pi).
D is zero at |x| = 0.7518: its error is relative to S, the sum of its terms: erfcx 4.7 + 3 (19.8 + 3
beyond 32), |x|/sqrt(2 pi) 1 + 2, the difference 3; exp 5 and the product 5: 20.7 U^2 S, or 35.8.
Tiny x: x (1/2 + x/sqrt(2 pi)), slope 1/2 + 2 x/sqrt(2 pi); next terms x^2/3 of the last ones.
Beyond CERTAIN the distance from x or from 1 is below TINIEST |x|.
Fast: |x|/sqrt 2 has 1.5 units, x^2/2 is exact: tail 2^-46.4, 1 - Q (Q <= 1/2) and the product, one
unit each -> FAST_GELU_BOUND 2^-46; arguments are cut at -17, where |gelu| is below 2^-206.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import U, dd_add, dd_mul, dd_mul_double
from refkernels.arithmetic.eft import two_prod
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.elementary.erf_tables import (
    DENSITY_HIGH,
    DENSITY_LOW,
    SQRT_HALF_HIGH,
    SQRT_HALF_LOW,
)
from refkernels.kernels.elementary.erf_tail import (
    FARTHEST,
    LIMIT,
    erfcx_dd,
    fast_tail,
    one_minus,
    tail_dd,
)
from refkernels.kernels.elementary.exponential import FAR, FAR_ERROR, exp_dd
from refkernels.kernels.elementary.results import (
    LINEAR,
    exactly,
    place,
    tiny_product,
    tiny_sum,
    vanishing,
)

FAST_GELU_BOUND = 2.0**-46
SLOPE_NEAR = 22 * U**2
SLOPE_MIDDLE = 37 * U**2
TINY = 2.0**-60
CERTAIN = 36.0
TINIEST = 2.0**-929  # above 36 exp(-36^2/2): the distance of gelu(x)/x and gelu' from 1


@inner
def _arguments(a: Any) -> Any:
    """a^2/2 exactly and a/sqrt 2, as double-doubles."""
    sh, sl = two_prod(a, 0.5 * a)
    wh, wl = dd_mul_double(SQRT_HALF_HIGH, SQRT_HALF_LOW, a)
    return sh, sl, wh, wl


@inner
def gelu(x: Any) -> Any:
    """gelu(x) as (high, low, radius, scale)."""
    if x == 0.0 or not math.isfinite(x):
        return exactly(-0.0 if x == -math.inf else x)
    if abs(x) < LINEAR:
        return tiny_product(0.5, DENSITY_HIGH, x, 1)
    if x > CERTAIN:
        return x, -x * (0.5 * TINIEST), x * (0.5 * TINIEST), 0
    a = abs(x)
    if a > FARTHEST:
        return vanishing(-1.0)
    sh, sl, wh, wl = _arguments(a)
    high, low, error, k = tail_dd(sh, sl, wh, wl)
    if x < 0.0:
        high, low = dd_mul_double(high, low, -a)
        return place(high, low, -high * ((error + 2 * U**2) * (1.0 + 2.0**-40)), k - 1)
    high, low, radius = one_minus(high, low, high * error, k - 1)
    high, low = dd_mul_double(high, low, x)
    return high, low, (radius * x + high * (2 * U**2)) * (1.0 + 2.0**-40), 0


@inner
def gelu_slope(x: Any) -> Any:
    """gelu'(x) as (high, low, radius, scale)."""
    if not math.isfinite(x):
        return exactly(x if x != x else (1.0 if x > 0.0 else -0.0))
    if x == 0.0:
        return exactly(0.5)
    if abs(x) < TINY:
        return tiny_sum(0.5, 2.0 * DENSITY_HIGH, x, 1)
    if x > CERTAIN:
        return 1.0, 0.5 * TINIEST, 0.5 * TINIEST, 0
    a = abs(x)
    if a > FARTHEST:
        return vanishing(-1.0)
    sh, sl, wh, wl = _arguments(a)
    eh, el, k = exp_dd(-sh, -sl)
    ch, cl = erfcx_dd(wh, wl)
    ph, pl = dd_mul_double(DENSITY_HIGH, DENSITY_LOW, a)
    high, low = dd_add(0.5 * ch, 0.5 * cl, -ph, -pl)
    high, low = dd_mul(eh, el, high, low)
    error = SLOPE_NEAR if wh < LIMIT else SLOPE_MIDDLE
    if sh > FAR:
        error += FAR_ERROR
    radius = eh * (0.5 * ch + ph) * error * (1.0 + 2.0**-40)
    if x < 0.0:
        return place(high, low, radius, k)
    high, low, radius = one_minus(high, low, radius, k)
    return high, low, radius, 0


@njit(nogil=True)
def gelu_fast(x: Any, hi: Any) -> None:
    """`Fast` of gelu: relative error <= FAST_GELU_BOUND for every float32 x."""
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        a = abs(v)
        a = a if a < 17.0 else 17.0
        q = 0.5 * fast_tail(a * (0.5 * a), a * SQRT_HALF_HIGH)
        y = v * (1.0 - q) if v >= 0.0 else -a * q
        y = -0.0 if v == -math.inf else y
        hi[i] = y if v == v else v
