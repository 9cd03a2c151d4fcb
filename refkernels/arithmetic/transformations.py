"""Error-free transformations of float64 arrays: a sum or product as rounded value and exact error.

Sources: Knuth, TAOCP vol. 2, section 4.2.2; Dekker (1971), doi:10.1007/BF01397083.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


def two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """fl(a + b) and a + b - fl(a + b), exactly; NaN where the sum is not finite."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def two_prod(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """fl(a b) and a b - fl(a b), exactly for factors of 2^-400 to 2^400 in size, and for 0."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Doubles) -> tuple[Doubles, Doubles]:
    c = (2.0**27 + 1.0) * a
    high = c - (c - a)
    return high, a - high


def divided(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """q = fl(a / b) and a - q b, exactly, for a and b of 2^-400 to 2^400 in size: the remainder of
    a correctly rounded quotient is a float64 (Boldo and Daumas, 2003)."""
    q = a / b
    product, error = two_prod(q, b)
    return q, (a - product) - error


def rooted(a: Doubles) -> tuple[Doubles, Doubles]:
    """s = fl(√a) and a - s², exactly, for a of 2^-400 to 2^400: a float64 too."""
    s = np.sqrt(a)
    product, error = two_prod(s, s)
    return s, (a - product) - error


def multiply_add(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """fl(a b + c), rounded once, a zero with the sign of IEEE 754, for factors as of `two_prod` and
    |c| <= 2^1000; NaN where a number is not finite.

    The exact sum is high + low + lowest; low + lowest, rounded to odd, still breaks high's ties.
    Source: Boldo and Melquiond (2008), doi:10.1109/TC.2007.70819.
    """
    product, error = two_prod(a, b)
    middle, lowest = two_sum(c, error)
    high, low = two_sum(product, middle)
    tail, dropped = two_sum(lowest, low)
    even = (tail.view(np.int64) & 1) == 0
    odd = np.nextafter(tail, np.copysign(np.inf, dropped))
    tail = np.where(even & (dropped != 0.0), odd, tail)
    return np.where(product == 0.0, product + c, high + tail)
