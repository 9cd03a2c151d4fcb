"""dy times a slope's enclosure: the backward pass of every elementwise op, with its error.

With dy = m 2^e (1/2 <= |m| < 1) and the slope (h + l ± r) 2^s brought to 1/2 <= |h| < 1:
    m h = p + q exactly (two_prod: no underflow),  t = fl(m l),  w + lost = q + t exactly,
    m (h + l) = p + w + lost + (m l - t),          |m l - t| <= U |t| + 2^-1074.
So the radius is r |m| + |lost| + U |t| and a subnormal. Where l alone separates a value from a
midpoint (x^2 beside 1), no error relative to p swamps it. A slope on one side of h (r = |l|) or of
zero (r = |h|) gives a product on one side of m h = p, where q = 0, or of zero.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import U
from refkernels.arithmetic.eft import fast_two_sum, two_prod, two_sum
from refkernels.arithmetic.jit import inner, njit

PRODUCT_ERROR = 3.1 * U**2  # the product's own error: |lost| <= U (|q| + |t|) and U |t|
_SLACK = 1 + 2.0**-50  # for the three roundings of the radius itself
_SAFE = 2.0**-1000  # parts above it can be scaled by powers of two without loss
_RANGE = 400  # exponents beyond it stay in the scale


@njit
def multiply(dy: Any, high: Any, low: Any, radius: Any, scale: Any) -> Any:
    """dy (high + low ± radius) 2^scale as (hi, lo, radius, scale).

    Special values are those of one IEEE 754 product dy · f'(x): a zero of the product's sign for
    dy = ±0, a signed infinity for dy = ±inf, NaN for 0 times infinity and for NaNs.
    """
    if math.isinf(radius) and math.isinf(high) and not math.isinf(dy):  # a finite slope
        if dy == 0.0 or dy != dy:
            return dy * math.copysign(1.0, high), 0.0, 0.0, 0
        return dy * high, 0.0, math.inf, 0
    exact_zero = high == 0.0 and radius == 0.0
    if dy == 0.0 or exact_zero or not (math.isfinite(dy) and math.isfinite(high)):
        if high == 0.0 and not exact_zero:  # a slope that cancels is not zero: only its sign counts
            high = math.copysign(1.0, high)
        elif dy == 0.0 and math.isfinite(high):  # neither by underflow nor by the slope's zero
            return math.copysign(0.0, dy) * math.copysign(1.0, high), 0.0, 0.0, 0
        return dy * high, 0.0, 0.0, 0
    beside, above = radius == abs(low) != 0.0, radius == abs(high) and low == 0.0
    rounded = low != 0.0 or radius != 0.0
    m, exponent = math.frexp(dy)
    _, shift = math.frexp(high)
    high, low = math.ldexp(high, -shift), math.ldexp(low, -shift)
    wide = math.ldexp(radius, -shift)
    if math.ldexp(wide, shift) < radius:  # a subnormal radius of a huge slope
        wide += 2.0**-1074
    p, q = two_prod(m, high)
    if q == 0.0 and beside:
        bound = max(np.nextafter(abs(m * low), math.inf), 2.0**-1022)
        return _scaled(p, math.copysign(bound, m * low), bound, exponent + shift + scale)
    if q == 0.0 and above:
        return _scaled(p, 0.0, abs(p), exponent + shift + scale)
    t = m * low
    w, lost = two_sum(q, t)
    p, w = fast_two_sum(p, w)
    spread = wide * abs(m) + abs(lost) + U * abs(t)
    if rounded or lost != 0.0:
        spread = spread * _SLACK + 2.0**-1070
    return _scaled(p, w, spread, exponent + shift + scale)


@inner
def _scaled(high: Any, low: Any, radius: Any, exponent: int) -> Any:
    """Moves the exponent into the parts where nothing is lost."""
    if abs(exponent) < _RANGE:
        factor = math.ldexp(1.0, exponent)
        small, wide = low * factor, radius * factor
        if exponent >= 0 or (
            (low == 0.0 or abs(small) > _SAFE) and (radius == 0.0 or wide > _SAFE)
        ):
            return high * factor, small, wide, 0
    return high, low, radius, exponent


@njit(nogil=True)
def multiply_all(
    dy: Any, slope: Any, scales: Any, hi: Any, lo: Any, radius: Any, scale: Any
) -> None:
    """`multiply` for every element; slope holds high, low and radius as rows."""
    for i in range(dy.size):
        hi[i], lo[i], radius[i], scale[i] = multiply(
            dy[i], slope[0, i], slope[1, i], slope[2, i], scales[i]
        )
