"""Error-free transformations: a sum or a product as rounded result plus its exact error.

Every function returns (result, error) with result = fl(a op b) and result + error = a op b
exactly, in the arguments' own precision (float32 or float64), as long as nothing overflows.
A product's error is exact only while it does not underflow: |a b| >= 2^(emin + p - 1) or a b = 0.
"""

from typing import Any

from refkernels.arithmetic.fma import fma
from refkernels.arithmetic.jit import njit

__all__ = ["fast_two_sum", "fma", "split", "two_prod", "two_prod_dekker", "two_sum"]


@njit
def two_sum(a: Any, b: Any) -> Any:
    """fl(a + b) and its error, for any a and b: 6 operations.

    Source: Knuth, TAOCP vol. 2, section 4.2.2, theorem B.
    """
    s = a + b
    b_seen = s - a
    a_seen = s - b_seen
    return s, (a - a_seen) + (b - b_seen)


@njit
def fast_two_sum(a: Any, b: Any) -> Any:
    """fl(a + b) and its error. Assumption: |a| >= |b| or a = 0. 3 operations.

    Source: Dekker (1971), Numer. Math. 18, doi:10.1007/BF01397083.
    """
    s = a + b
    return s, b - (s - a)


@njit
def two_prod(a: Any, b: Any) -> Any:
    """fl(a * b) and its error, by FMA: 2 operations.

    Source: Ogita, Rump, Oishi (2005), algorithm 3.5, doi:10.1137/030601818.
    """
    product = a * b
    return product, fma(a, b, -product)


@njit
def split(a: Any, splitter: Any) -> Any:
    """a = high + low, each with at most half the significand. splitter = 2^ceil(p/2) + 1.

    Assumption: |a| * splitter does not overflow. Source: Veltkamp, in Dekker (1971).
    """
    c = splitter * a
    high = c - (c - a)
    return high, a - high


@njit
def two_prod_dekker(a: Any, b: Any, splitter: Any) -> Any:
    """fl(a * b) and its error without FMA: 17 operations, for older processors.

    Source: Dekker (1971), Mul12.
    """
    product = a * b
    a_high, a_low = split(a, splitter)
    b_high, b_low = split(b, splitter)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error
