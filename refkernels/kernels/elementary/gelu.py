"""gelu(x) = x Phi(x) = x erfc(-x/sqrt 2)/2: the float64 tier, and values as double-doubles.

With Q = exp(-x^2/2) erfcx(|x|/sqrt 2)/2 (erf_tail.py), U = 2^-53, x^2/2 exact, |x|/sqrt 2 to 3 U^2:
    gelu(x) = x Q for x < 0, x (1 - Q) for x > 0: nothing cancels.   tail's error, 2 U^2 a product
Tiny x: x (1/2 + x/sqrt(2 pi)); the next term is x^2/3 of the last one. Beyond CERTAIN the distance
from x is below TINIEST |x|.
Fast: |x|/sqrt 2 has 1.5 units, x^2/2 is exact: tail 2^-46.4, 1 - Q (Q <= 1/2) and the product, one
unit each -> FAST_GELU_BOUND 2^-46; arguments are cut at -17, where |gelu| is below 2^-206.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import U, dd_mul_double
from refkernels.arithmetic.eft import two_prod
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.elementary.erf_tables import (
    DENSITY_HIGH,
    SQRT_HALF_HIGH,
    SQRT_HALF_LOW,
)
from refkernels.kernels.elementary.erf_tail import (
    FARTHEST,
    fast_tail,
    one_minus,
    tail_dd,
)
from refkernels.kernels.elementary.results import (
    LINEAR,
    exactly,
    place,
    tiny_product,
    vanishing,
)

FAST_GELU_BOUND = 2.0**-46
CERTAIN = 36.0
TINIEST = 2.0**-929  # above exp(-36^2/2): the distance of gelu(x)/x from 1


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
