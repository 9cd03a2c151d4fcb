"""Dot products with a chosen condition number, in any format.

The generator is Ogita, Rump, Oishi (2005), algorithm 6.1, doi:10.1137/030601818, for several
columns y that share one row x. The first half of the terms has random exponents up to half the
condition number's. Each term of the second half, with falling exponents, cancels the exact sum so
far down to its own size; the last term leaves the sum that gives the condition number.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format

Array = npt.NDArray[Any]


def ill_conditioned_dot(
    generator: np.random.Generator, terms: int, columns: int, condition: float, format: Format | str
) -> tuple[Array, Array]:
    """x (terms,) and y (terms, columns) in the format, with 2|x|.|y_j| / |x.y_j| close to
    `condition` for every j (the tests say how close). Requires terms >= 6, condition >= 2."""
    target = formats.get(format)
    top = math.log2(condition) / 2
    half = terms // 2
    exponents = np.rint(generator.uniform(0.0, top, half))
    exponents[0], exponents[-1] = np.rint(top) + 1, 0
    falling = np.rint(np.linspace(top, 0.0, terms - half))
    powers = np.ldexp(1.0, np.concatenate([exponents, falling]).astype(int) - int(top / 2))
    x = _rounded(_away_from_zero(generator, (terms,)) * powers, target)
    y = _rounded(_away_from_zero(generator, (terms, columns)) * powers[:, None], target)
    for j in range(columns):
        _cancel(x, y[:, j], half, powers, condition, target)
    return x.astype(target.storage), y.astype(target.storage)


def _cancel(
    x: Array, column: Array, half: int, powers: Array, condition: float, format: Format
) -> None:
    """Rewrites the second half of the column so that the dot product falls to the wanted size."""
    products = [Fraction(a) * Fraction(b) for a, b in zip(x[:half], column[:half], strict=True)]
    total = sum(products, Fraction(0))
    size = sum((abs(product) for product in products), Fraction(0))
    for k in range(half, x.size):
        last = k == x.size - 1
        wanted = 2 * size / Fraction(condition) if last else Fraction(column[k] * powers[k])
        column[k] = _rounded(np.float64(float((wanted - total) / Fraction(x[k]))), format)
        total += Fraction(x[k]) * Fraction(column[k])
        size += abs(Fraction(x[k]) * Fraction(column[k]))


def _away_from_zero(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Random signs and magnitudes in [1/2, 1)."""
    return generator.uniform(0.5, 1.0, shape) * generator.choice([-1.0, 1.0], shape)


def _rounded(values: Any, format: Format) -> Array:
    return formats.round_to(values, format).astype(np.float64)
