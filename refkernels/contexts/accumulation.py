"""Bounds on the error of sums, products and powers, for any order of their operations.

The caller rounds them outward. A bound is infinite where an intermediate result may leave the
format's range.

Source of the sums: Jeannerod and Rump (2013), "Improved error bounds for inner products in
floating-point arithmetic", doi:10.1137/120894488.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.arithmetic.matrix_instructions import instructed
from refkernels.arithmetic.rounding import Doubles, Rounding
from refkernels.contexts.ball import U

_UP = 1.0 + 2.0**-40  # exceeds the roundings that follow it


def summed(
    rounding: Rounding, errors: Doubles, sizes: Doubles, terms: Any, most_terms: int
) -> Doubles:
    """Σ r + (n - 1) u Σ (M + r) for n = `terms` <= most_terms. A partial sum is at most
    Σ (M + r) (1 + (n - 1) u)."""
    growth = rounding.unit * np.maximum(np.asarray(terms, np.float64) - 1.0, 0.0)
    slack = 1.0 + 4.0 * most_terms * U + 2.0**-50  # the caller's sums are rounded too
    error = (errors + growth * sizes) * slack
    return np.where(rounding.beyond(sizes * (1.0 + growth) * slack), np.inf, error)


def counted(rounding: Rounding, reach: Doubles, sizes: Doubles, axis: int) -> Any:
    """The n of `summed` for N terms of at most M + r, with sum S. Adding 0 rounds nothing. Terms of
    at most u S / N make u S, and err by N u times that; adding some to a number of the format errs
    by no more than they are. The m others err by u S (m - 1) (1 + (m + 2) u) where they meet, and
    by u S where wider formats kept them: (m + 2) u S in all, if (m + 1)^2 + 2 N <= 1 / u."""
    n, unit = reach.shape[axis], rounding.unit
    terms, large = (
        np.count_nonzero(reach > least, axis, keepdims=True)
        for least in (0.0, sizes * (unit / max(n, 1)))
    )
    usable = ((large + 1.0) ** 2 + 2.0 * n) * unit <= 1.0
    return np.where(usable, np.minimum(large + 3, terms), terms)


def product(
    rounding: Rounding, terms: int | Doubles, sizes: Doubles, by_instructions: bool = False
) -> Doubles:
    """K w A + K η/2, A = Σ |a b| + K η/2, w = u / (1 - u), each product rounded or fused into an
    addition, from sizes >= Σ |a b|.

    An underflow of a product, or of the FMA that adds it, changes that product by η/2 at most: the
    computed result is that of a sum without underflow whose terms p are so changed. There a node
    of k terms with A = Σ |p| is off by at most k w A, by induction over the tree:

    A product: u |p|. Nodes 1 and 2 added: the rounding is at most |ŝ1| <= A1 + k1 w A1, and at
    most u |ŝ1 + ŝ2|.
      u A2 >= A1, or with 1 and 2 exchanged: 2 k1 w A1 + A1 + k2 w A2 is at most (k1 + k2) w
      (A1 + A2), for A1 <= w A2 and k1 A1 + A2 <= k1 A2 + k2 A1 (plain for k1 = 1, else by
      k1 u <= k1 - 1).
      Neither: u (A1 + A2) = w (1 - u) (A1 + A2) <= w (k1 (A2 - u A1) + k2 (A1 - u A2)), so
      u (A1 + A2) + u w (k1 A1 + k2 A2) <= w (k1 A2 + k2 A1), which remained to be shown.
    An FMA adds p to node 1: the rounding is at most |p|, enough where |p| <= u A1; else at most
    u (A1 + |p|) + u k1 w A1, enough since u A1 <= |p|.

    `by_instructions`: or by matrix instructions, for factors of 16 bits.
    """
    relative = terms * (rounding.unit / (1.0 - rounding.unit))
    relative = np.maximum(relative, instructed(terms)) if by_instructions else relative
    underflow = terms * rounding.half
    total = sizes + underflow
    lost = (relative * total + underflow) * _UP
    return np.where(rounding.beyond(total * (1.0 + relative)), np.inf, lost)


def power(rounding: Rounding, reach: Doubles, error: Doubles, n: int) -> Doubles:
    """|p̂ - x^n| for p̂ = x̂^n by any n - 1 multiplications, powers shared or not; n >= 2,
    |x̂ - x| <= error, |x|, |x̂| <= reach.

    |x̂^n - x^n| <= n |x̂ - x| reach^(n-1). In x^(i+j) = x^i x^j the factors 1 + δ of both are
    multiplied and one is added: n - 1 in all, so t + t² at most, t = (n - 1) u <= 1. Only |x̂| <= 1
    underflows, and there every computed power is at most 1: an absolute error grows by
    e_(i+j) <= (1 + u)^n (e_i + e_j) + η/2, so e_n <= (n - 1) (1 + u)^(n²) η/2: at most
    3 (n - 1) η/2 for n² u <= 1.
    """
    t = (n - 1) * rounding.unit
    if n * n * rounding.unit > 1.0:
        return np.full(reach.shape, np.inf)
    below = _power(reach, n - 1)
    relative = t + t * t
    lost = n * error * below + relative * (below * reach)
    lost = lost + np.where(reach > 0.0, 3.0 * (n - 1) * rounding.half, 0.0)
    top = np.maximum(reach, 1.0) * below * (1.0 + relative)
    return np.where(rounding.beyond(np.maximum(top, below)), np.inf, lost * (1.0 + 4.0 * n * U))


def _power(base: Doubles, n: int) -> Doubles:
    """base^n >= 0 by multiplications: too small by n - 1 roundings at most."""
    result = np.ones_like(base)
    while n:
        if n & 1:
            result = result * base
        base, n = base * base, n >> 1
    return result


def inverse(rounding: Rounding, n: int) -> float:
    """|t - 1/n| for t = 1 / fl(n), exact or rounded, or fl(1 / n): u / ((1 - u) n) for each of the
    two roundings, and η/2."""
    if n > rounding.format.max:
        return float(np.inf)
    n_exact, inverse_exact = rounding.holds(np.asarray([float(n), 1.0 / n]))
    if n_exact and inverse_exact and n & (n - 1) == 0:
        return 0.0
    roundings = 1.0 if n_exact else 2.0
    u = rounding.unit
    return float((roundings * u / (1.0 - u) / n + 2.0 * rounding.half) * _UP)


def moments(
    rounding: Rounding, terms: int, reach: Doubles, squares: Doubles
) -> tuple[Doubles, Doubles]:
    """The errors of the mean and of the sum of squared distances by one pass over n terms of at
    most `reach` in magnitude whose exact sum of squared distances is at most `squares`.

    With t = (n + 8) u < 1, G = t / (1 - t), X = reach, E = G X + (n + 8) η, σ² = squares / n:

        mean     E                  squares     n ((1 + G) (2.2 E σ + 1.1 E²) + 1.1 G σ²
                                                   + (9 + log2 n) η)

    Welford's and Chan's means have e <= C u X', C <= n + 8, with X' = X + max e the largest number
    on the way (`layernorm_ref.row_errors` has the recursions, for X' near X): so e <= t X' and
    X' <= X / (1 - t). There, too, are the squares: 2.11 E σ + E² for the means that are off, and at
    most n + 8 roundings of each term, (1 + u)^(n + 8) - 1 <= G. 0.1 of each is for this function's
    own roundings.
    """
    t = (terms + 8.0) * rounding.unit
    if t >= 0.9:
        return np.full(reach.shape, np.inf), np.full(reach.shape, np.inf)
    growth, eta = t / (1.0 - t), 2.0 * rounding.half
    mean = growth * reach + (terms + 8.0) * eta
    variance = squares / terms + eta
    lost = (1.0 + growth) * (2.2 * mean * np.sqrt(variance) + 1.1 * mean**2)
    lost = lost + 1.1 * growth * variance + (9.0 + np.log2(terms)) * eta
    return mean * _UP, terms * lost * _UP


def products(
    rounding: Rounding, terms: int, size: Doubles, relative: Doubles, top: Doubles
) -> Doubles:
    """The error of a product of at most n factors, multiplied in any order.

    `size` is at least the product of the c_k, the factors' magnitudes with their errors e_k
    included; `relative` is sum e_k / c_k; `top` is at least the product of max(c_k, 1).

    The factors' errors move the product by c_1 ... c_n sum e_k / c_k at most. n - 1 roundings
    follow, (1 + u)^n - 1 <= expm1(n u). A product that underflows loses η/2, which other factors
    multiply by `top` at most. A product with an exact 0 among its factors is 0.
    """
    growth = np.expm1(terms * rounding.unit)
    error = size * relative + growth * size + terms * rounding.half * top * (1.0 + growth)
    error = np.where(size > 0.0, error * (1.0 + 8.0 * terms * U + _UP - 1.0), 0.0)
    return np.where(rounding.beyond(top * (1.0 + growth) * _UP), np.inf, error)
