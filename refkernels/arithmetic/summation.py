"""Sums and dot products in a working precision, from the plainest to the compensated.

Kernels generic in dtype (float32, float64): every operation is rounded to the arguments' own
precision, in exactly the order written, so that in float32 they are models of real kernels.
u is the unit roundoff, gamma_n = n u / (1 - n u), S = sum |x_i|, s the exact sum. Bounds hold
while nothing overflows; those of dot products assume that no product underflows.

Sources: Higham (1993), "The accuracy of floating point summation", doi:10.1137/0914050;
Ogita, Rump, Oishi (2005), "Accurate sum and dot product", doi:10.1137/030601818 (ORO);
Kahan (1965), doi:10.1145/363707.363723; Neumaier (1974), doi:10.1002/zamm.19740540106.
"""

from typing import Any

from refkernels.arithmetic.eft import fast_two_sum, two_prod, two_sum
from refkernels.arithmetic.jit import inner, njit

__all__ = [
    "dot",
    "dot2",
    "kahan",
    "neumaier",
    "pairwise",
    "sequential",
]

_LEAF = 128  # NumPy's block of pairwise summation
_LANES = 8


@njit
def sequential(x: Any) -> Any:
    """fl((x_1 + x_2) + x_3 + ...); |error| <= gamma_(n-1) S. Source: Higham (1993), method 1."""
    total = x.dtype.type(0)
    for value in x:
        total += value
    return total


@njit
def pairwise(x: Any) -> Any:
    """NumPy's order: sequential below 8 elements; eight accumulators, combined in pairs, up to
    128; halves (the first a multiple of 8) beyond. |error| <= gamma_(19 + log2(n / 64)) S.

    Source: Higham (1993), section 2; NumPy, loops_utils.h.src, pairwise_sum.
    """
    n = x.size
    if n < _LANES:
        total = x.dtype.type(0)
        for value in x:
            total += value
        return total
    if n <= _LEAF:
        return _eight_lanes(x)
    half = n // 2
    half -= half % _LANES
    return pairwise(x[:half]) + pairwise(x[half:])


@inner
def _eight_lanes(x: Any) -> Any:
    r0, r1, r2, r3, r4, r5, r6, r7 = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    multiple = x.size - x.size % _LANES
    for i in range(_LANES, multiple, _LANES):
        r0 += x[i]
        r1 += x[i + 1]
        r2 += x[i + 2]
        r3 += x[i + 3]
        r4 += x[i + 4]
        r5 += x[i + 5]
        r6 += x[i + 6]
        r7 += x[i + 7]
    total = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
    for i in range(multiple, x.size):
        total += x[i]
    return total


@njit
def kahan(x: Any) -> Any:
    """Compensated summation: the last addition's error is subtracted from the next term.
    |error| <= (2u + O(n u^2)) S. Source: Kahan (1965); Higham (1993), method 4.
    """
    total = x.dtype.type(0)
    error = x.dtype.type(0)
    for value in x:
        total, error = kahan_step(total, error, value)
    return total


@inner
def kahan_step(total: Any, error: Any, value: Any) -> Any:
    """One term of Kahan's sum: the new (total, error)."""
    wanted = value - error
    following = total + wanted
    return following, (following - total) - wanted


@njit
def neumaier(x: Any) -> Any:
    """Kahan-Babuska: every addition's exact error, by the larger operand, goes into a sum of its
    own, added once at the end. |error| <= u |s| + gamma_(n-1)^2 S: twice the precision, rounded.

    Source: Neumaier (1974), method IV; the bound is ORO's proposition 4.5.
    """
    total = x.dtype.type(0)
    errors = x.dtype.type(0)
    for value in x:
        total, errors = neumaier_step(total, errors, value)
    return total + errors


@inner
def neumaier_step(total: Any, errors: Any, value: Any) -> Any:
    """One term of Neumaier's sum: the new (total, sum of errors)."""
    larger, smaller = (total, value) if abs(total) >= abs(value) else (value, total)
    following, error = fast_two_sum(larger, smaller)
    return following, errors + error


@njit
def dot(x: Any, y: Any) -> Any:
    """fl(sum fl(x_i y_i)), sequential; |error| <= gamma_n |x|.|y|. Source: Higham (2002), 3.1."""
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@njit
def dot2(x: Any, y: Any) -> Any:
    """As if in twice the precision and rounded: |error| <= u |x.y| + gamma_n^2 |x|.|y|.

    Source: ORO, algorithm 5.3 with two_prod by FMA, proposition 5.5.
    """
    total = x.dtype.type(0)
    errors = x.dtype.type(0)
    for i in range(x.size):
        total, errors = dot2_step(total, errors, x[i], y[i])
    return total + errors


@inner
def dot2_step(total: Any, errors: Any, a: Any, b: Any) -> Any:
    """One term of Dot2: the new (total, sum of errors)."""
    product, product_error = two_prod(a, b)
    total, sum_error = two_sum(total, product)
    return total, errors + (product_error + sum_error)
