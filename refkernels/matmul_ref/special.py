"""Answers that are NaN or infinite, by the extended reals: special terms are counted by sign."""

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas
from refkernels.matmul_ref.contraction import Array

Floats = npt.NDArray[np.float64]


def values(
    left: Floats, right: Floats, at: tuple[Array, Array]
) -> tuple[npt.NDArray[np.intp], Floats]:
    """Flat indices and values of the answers that are NaN or infinite."""
    touched = ~np.isfinite(left).all(axis=(0, 1)) | ~np.isfinite(right).all(axis=(0, 2))
    if not touched.any():
        return np.empty(0, np.intp), np.empty(0)
    a, b = left[:, :, touched][at[0]], right[:, touched][at[1]]
    positive = _both(a > 0, b > 0, a, b) + _both(a < 0, b < 0, a, b)
    negative = _both(a > 0, b < 0, a, b) + _both(a < 0, b > 0, a, b)
    undefined = (
        _count(np.isnan(a), np.ones_like(b, np.bool_))
        + _count(np.ones_like(a, np.bool_), np.isnan(b))
        + _count(np.isinf(a), b == 0)
        + _count(a == 0, np.isinf(b))
    )
    nan = (undefined > 0) | ((positive > 0) & (negative > 0))
    specials = np.where(nan, np.nan, np.where(positive > 0, np.inf, -np.inf)).ravel()
    places = np.flatnonzero(nan | (positive > 0) | (negative > 0))
    return places, specials[places]


def _both(
    a_sign: npt.NDArray[np.bool_], b_sign: npt.NDArray[np.bool_], a: Floats, b: Floats
) -> Floats:
    """How many terms have these signs and an infinite operand."""
    infinite_a, infinite_b = np.isinf(a) & a_sign, np.isinf(b) & b_sign
    return _count(infinite_a, b_sign) + _count(a_sign & ~infinite_a, infinite_b)


def _count(a: npt.NDArray[np.bool_], b: npt.NDArray[np.bool_]) -> Floats:
    return blas.product(a.astype(np.float64), b.astype(np.float64))
