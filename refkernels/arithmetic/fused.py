"""fl(a b + c), rounded once, for arrays of any format."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.eft import fma, two_sum
from refkernels.arithmetic.jit import njit

Array = npt.NDArray[Any]


@njit
def _fma64(a: Any, b: Any, c: Any, result: Any) -> None:
    for i in range(result.size):
        result[i] = fma(a[i], b[i], c[i])


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """fl(a b + c) in the arrays' common format.

    In narrower formats than float64 the product is exact in float64, and its sum with c is rounded
    to odd before the last rounding. Source: Boldo and Melquiond (2008), doi:10.1109/TC.2007.70819.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    wide = [np.array(part, np.float64, order="C").reshape(-1) for part in (a, b, c)]
    result = np.empty(a.size)
    if a.dtype == np.float64:
        _fma64(*wide, result)
        return result.reshape(a.shape)
    with np.errstate(all="ignore"):
        total, error = two_sum.py_func(wide[0] * wide[1], wide[2])
        even = (total.view(np.int64) & 1) == 0
        odd = np.nextafter(total, np.where(error > 0.0, np.inf, -np.inf))
        total = np.where(even & (error != 0.0) & np.isfinite(total), odd, total)
        return formats.round_to(total, formats.of(a)).reshape(a.shape)
