"""Layouts of arrays that are not dense, for the family "strides"."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def _transposed(array: Array) -> Array | None:
    return np.asfortranarray(array) if array.ndim > 1 else None


def _gapped(array: Array) -> Array | None:
    if not array.ndim:
        return None
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
    wide[..., 1::2] = array
    return wide[..., 1::2]


def _repeated(array: Array) -> Array | None:
    """The array's first row at all places, by a stride of 0."""
    return np.broadcast_to(array[:1], array.shape) if array.ndim > 1 else None


def _padded_rows(array: Array) -> Array | None:
    """Rows of a wider matrix."""
    if array.ndim < 2:
        return None
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide[..., : array.shape[-1]]


LAYOUTS = (_transposed, _gapped, _repeated, _padded_rows)
"""Each gives an array in another layout, or None for one with too few axes."""
