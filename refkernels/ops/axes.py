"""Axes of an op that goes along any of x's: brought last, and made one."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.ops.canonical import Array, Restore


def axes_of(axis: Any, shape: tuple[int, ...], several: bool = True) -> tuple[int, ...]:
    """The axes from 0: an integer's, those of a tuple or list, or all for None; in x's order.

    Raises TypeError for what is none of these, ValueError for axes that x lacks, twice the same one
    and an empty tuple, which NumPy takes for no axis and PyTorch for all.
    """
    if axis is None and several:
        return tuple(range(len(shape)))
    listed = tuple(axis) if several and isinstance(axis, tuple | list) else (axis,)
    listed = tuple(as_count(one, "axis", least=-(2**63)) for one in listed)
    for one in listed:
        if not -len(shape) <= one < len(shape):
            raise ValueError(f"x has shape {shape}: it has no axis {one}.")
    found = tuple(sorted({one % len(shape) for one in listed}))
    if len(found) < len(listed) or not found:
        told = "names an axis twice" if listed else "is empty: None stands for all axes"
        raise ValueError(f"axis {axis!r} {told}.")
    return found


def along(
    inputs: dict[str, Any], axis: Any, whole: Collection[str] = ("x",), several: bool = True
) -> tuple[dict[str, Any], Restore]:
    """The inputs with these axes of x last, as one; and what puts them back into an output.

    `whole`: the inputs of x's shape; the others have that of the result, which lacks the axes.
    Raises as `axes_of` does, and ValueError for other shapes.
    """
    shape = inputs["x"].shape
    axes = axes_of(axis, shape, several)
    kept = tuple(k for k in range(len(shape)) if k not in axes)
    leading, own = (tuple(shape[k] for k in some) for some in (kept, axes))
    found = {}
    for name, array in inputs.items():
        wanted = shape if name in whole else leading
        if array is not None and array.shape != wanted:
            known = f"x {shape}: they are the same" if name in whole else f"the result {leading}"
            raise ValueError(f"{name} has shape {array.shape} and {known}.")
        if array is not None and name in whole:
            array = array.transpose(kept + axes).reshape(*leading, math.prod(own))
        found[name] = array

    def restore(name: str, array: Array) -> Array:
        if array.ndim == len(leading):
            return array
        return array.reshape(leading + own).transpose(np.argsort(kept + axes))

    return found, restore
