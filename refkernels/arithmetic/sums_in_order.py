"""Sums and moments of rows, term by term, in the terms' own precision: models of streaming kernels.

x of shape (rows, n); every operation is rounded to x's dtype, float32 or float64.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic.eft import fma
from refkernels.arithmetic.jit import njit


def by_numpy(values: Any, axis: int = 1) -> Any:
    """0 + v_0 + v_1 + ..., the last partial sum of NumPy's `accumulate`."""
    if not values.shape[axis]:
        return np.asarray(values.sum(axis=axis, dtype=values.dtype))
    partial = np.add.accumulate(values, axis=axis, dtype=values.dtype)
    return partial.take(-1, axis=axis) + values.dtype.type(0)  # 0 + (-0) is 0


@njit(nogil=True)
def fused(a: Any, b: Any, total: Any) -> None:
    """total = fl(a_k b_k + total) for k = 0, 1, ..."""
    for row in range(a.shape[0]):
        for k in range(a.shape[1]):
            total[row] = fma(a[row, k], b[row, k], total[row])


@njit(nogil=True)
def products(a: Any, b: Any, c: Any, by_fma: bool = False) -> None:
    """c_ij = fl(c_ij + fl(a_ik b_kj)) for k = 0, 1, ..., or fl(c_ij + a_ik b_kj) by FMAs."""
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            if by_fma:
                for j in range(b.shape[1]):
                    c[i, j] = fma(a[i, k], b[k, j], c[i, j])
            else:
                for j in range(b.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]


@njit(nogil=True)
def welford(x: Any, mean: Any, squares: Any) -> None:
    """mean += (x_k - mean) / k, squares += (x_k - old mean) (x_k - new mean).

    Source: Welford (1962), doi:10.1080/00401706.1962.10490022.
    """
    one = x.dtype.type(1)
    for row in range(x.shape[0]):
        m = s = x.dtype.type(0)
        count = x.dtype.type(0)
        for k in range(x.shape[1]):
            count += one
            before = x[row, k] - m
            m += before / count
            s += before * (x[row, k] - m)
        mean[row], squares[row] = m, s
