"""The error of computed steps p(X) = a X + (b G + c G²) X, G = X Xᵀ, by norms of whole matrices.

Norms are Frobenius' |·|, and the largest singular value |·|₂. Let |X|₂ and |X̂|₂ be at most s. p
acts on singular values, and in Frobenius' norm its Lipschitz constant is the largest |p'| on
[0, s]: of Hermitian matrices that is so by divided differences, and p(X) is a block of
p([0 X; Xᵀ 0]). So

    |p(X̂) - p(X)| <= max |p'| |X̂ - X|

to which the kernel's own roundings are added: a computed product of k terms is off by k w |A| |B|,
since |A_i| |B_j| bounds a sum of |a b|. Element by element, the errors of each step would be
multiplied by the sizes of those behind it: 10^16 after five steps of a 13 x 17 matrix, here 0.02.

Source: Higham (2008), "Functions of Matrices", chapters 3 and 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas
from refkernels.arithmetic.rounding import Rounding
from refkernels.contexts import accumulation
from refkernels.contexts.ball import ETA, BallValue, U
from refkernels.contexts.bound_value import BoundValue

Doubles = npt.NDArray[np.float64]
Numbers = tuple[BoundValue, ...]


def error(
    working: Rounding, x: BoundValue, coefficients: Numbers, steps: int, narrow: bool
) -> Doubles:
    """|X̂ - X| after so many steps, (..., 1, 1); infinite where a product may overflow. `narrow`:
    matrix instructions may multiply factors of 16 bits."""
    ball: Any = x.exact.context
    exact, found = x.exact, _norm(x.error)
    numbers = [k.exact for k in coefficients]
    for _ in range(steps):
        found = _after(working, exact, found, coefficients, narrow)
        exact = ball.newton_schulz(exact, *numbers, 1)
    return found


def _after(
    working: Rounding, exact: BallValue, error: Doubles, coefficients: Numbers, narrow: bool
) -> Doubles:
    """|X̂ - X| after a step from X̂ with that error."""
    m, n = exact.shape[-2:]
    slack = 1.0 + 64.0 * (m + n + 8.0) ** 2 * U  # of norms computed in float64
    unknown = _norm(exact.radius) + error
    size = (_norm(exact.mid) + unknown) * slack
    s = np.minimum(size, (_singular(exact.mid) + unknown) * slack)
    a, b, c = (float(np.max(k.reach)) for k in coefficients)
    each = 4.0 * working.unit  # a constant, its product and a sum round once each

    def product(terms: int, sizes: Doubles) -> Doubles:
        lost = accumulation.product(working, terms, sizes, by_instructions=narrow)
        return lost + m * n * terms * working.half

    of_gram = product(n, size**2)
    gram, gram_2 = s * size + of_gram, s**2 + of_gram  # |Ĝ|, |Ĝ|₂
    of_square = product(m, gram**2) + of_gram * (gram_2 + s**2)
    square = gram * gram_2 + of_square
    of_factor = b * of_gram + c * of_square + each * (b * gram + c * square)
    factor = b * gram + c * square + of_factor
    of_last = product(m, factor * size) + of_factor * s
    lost = of_last + each * (a * size + factor * size + of_last) + 8.0 * m * n * working.half
    found = (_steepest(coefficients, s) * error + lost) * slack + ETA
    largest = np.maximum.reduce([size**2, gram**2, factor * size, a * size, b * gram, c * square])
    return np.where(working.beyond(largest * slack) | ~(found < np.inf), np.inf, found)


def _norm(a: Doubles) -> Doubles:
    """At least |A|, but for `slack`: a square may underflow."""
    squares: Doubles = np.square(a).sum((-2, -1), keepdims=True)
    return np.sqrt(squares) + np.sqrt(a.shape[-2] * a.shape[-1]) * 2.0**-510


def _singular(x: Doubles) -> Doubles:
    """At least |X|₂, but for `slack`: |G¹⁶|^(1/32)."""
    power = blas.product(x, np.swapaxes(x, -1, -2))
    found = np.ones((*x.shape[:-2], 1, 1))
    for exponent in (2.0, 4.0, 8.0, 16.0, 32.0):
        size = _norm(power)
        found, power = found * size ** (1.0 / exponent), power / size
        power = blas.product(power, power)
    return found * _norm(power) ** (1.0 / 32.0)


def _steepest(coefficients: Numbers, s: Doubles) -> Doubles:
    """The largest |a + 3 b t + 5 c t²| for t = σ² on [0, s²]."""
    a, b, c = (float(k.exact.mid.flat[0]) for k in coefficients)
    unknown = sum(
        weight * float(np.max(k.exact.radius)) * s**power
        for k, weight, power in zip(coefficients, (1.0, 3.0, 5.0), (0, 2, 4), strict=True)
    )
    middle = np.clip(-0.3 * b / c if c else 0.0, 0.0, s**2)
    ends = (np.abs(a + 3.0 * b * t + 5.0 * c * t * t) for t in (0.0 * s, middle, s**2))
    rounded = 8.0 * U * (abs(a) + 3.0 * abs(b) * s**2 + 5.0 * abs(c) * s**4)
    return np.maximum.reduce([*ends]) * (1.0 + 2.0**-20) + rounded + unknown
