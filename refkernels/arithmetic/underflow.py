"""Gradual underflow in products: what is lost, and what multiplies the loss afterwards.

In a format with unit roundoff u and smallest subnormal eta, and without overflow (Higham 2002,
"Accuracy and Stability of Numerical Algorithms", section 2.8):
    fl(a b) = a b (1 + delta) + lost,   |delta| <= u,  |lost| <= eta / 2,  delta lost = 0,
and so for a / b and for a fused a b + c, while fl(a + b) = (a + b) (1 + delta) loses nothing.

**Products in any association.** f_1 ... f_k is a binary tree of k - 1 products. The loss of each
is multiplied by the factors outside its subtree. Two products have different factors outside, and
each has at most k - 2 of them. So the total loss is at most
    eta / 2 (1 + u)^k A,   A = the sum, over all sets of at most k - 2 factors, of |their product|.
Where one factor is inside each subtree, sets that hold it are left out. And as no rounding more
than doubles a number, the total loss is at most 2^(k-1) |f_1 ... f_k|.
"""

import math
from typing import Any

import numpy as np

_OWN = 2.0**-1074  # the loss of a product here, in float64


def amplification(*factors: Any) -> Any:
    """A of the module's text, for k >= 2 magnitudes: numbers or arrays that broadcast.

    amplification(a, b) = 1,  amplification(a, b, c) = 1 + a + b + c.
    """
    sums: list[Any] = [1.0] + [0.0] * (len(factors) - 2)  # by number of factors in the product
    for factor in factors:
        for count in range(len(sums) - 1, 0, -1):
            sums[count] = sums[count] + factor * sums[count - 1]
    return sum(sums[1:], sums[0])


def loss(eta: float, *factors: Any, inside: Any = None) -> Any:
    """What a product of k >= 2 factors of at most these magnitudes may lose by underflow, in any
    association: min(eta / 2 A, 2^(k-1) |product|), to first order in u.

    `inside`: one more factor, inside every subtree (kernels multiply a cotangent by one factor of
    the slope after the other). eta: the format's smallest subnormal. The result covers what
    float64 itself loses here.
    """
    fixed = () if inside is None else (inside,)
    amplified = amplification(*(0.0 for _ in fixed), *factors)
    doublings = len(fixed) + len(factors) - 1
    product = math.prod((*fixed, *factors), start=2.0**doublings)
    float64_loss = _OWN * (1.0 + doublings) * 2.0**doublings
    return np.fmin(max(eta / 2.0, _OWN) * amplified, product + float64_loss * amplified)
