"""Answers that are NaN or infinite, by the extended reals: finite factors count by their signs."""

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
    factors = left[:, :, touched][at[0]], right[:, touched][at[1]]
    with np.errstate(invalid="ignore"):
        signs = (np.where(np.isfinite(x), np.sign(x), x) for x in factors)
        specials = blas.product(*signs).ravel()
    places = np.flatnonzero(~np.isfinite(specials))
    return places, specials[places]
