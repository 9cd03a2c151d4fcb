"""The exact tier: single dot products in integer arithmetic. Slow, and never undecided."""

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import from_integer_balls, to_integers

Integers = tuple[list[int], int]


def dot_products(
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    at: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    flat_indices: npt.NDArray[np.intp],
) -> Enclosure:
    """The answers at those flat indices of (batch, M, N), from finite left (P, M, K) and
    right (Q, K, N); rows and columns that serve several answers are converted once."""
    rows: dict[tuple[int, int], Integers] = {}
    columns: dict[tuple[int, int], Integers] = {}
    sums: list[int] = []
    exponents: list[int] = []
    shape = (len(at[0]), left.shape[1], right.shape[2])
    for b, i, j in zip(*(x.tolist() for x in np.unravel_index(flat_indices, shape)), strict=True):
        row_key, column_key = (int(at[0][b]), i), (int(at[1][b]), j)
        if row_key not in rows:
            rows[row_key] = to_integers(left[row_key])
        if column_key not in columns:
            columns[column_key] = to_integers(right[column_key[0], :, j])
        (x, x_exponent), (y, y_exponent) = rows[row_key], columns[column_key]
        sums.append(sum(map(operator.mul, x, y)))
        exponents.append(x_exponent + y_exponent)
    return from_integer_balls(sums, [0] * len(sums), exponents, (len(sums),))
