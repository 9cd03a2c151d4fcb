"""Ops along any axes of x: the axes are moved last and joined into one."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.ops.canonical import Array, Restore


def axes_of(axis: Any, shape: tuple[int, ...], several: bool = True) -> tuple[int, ...]:
    """The axes that `axis` names, counted from 0, in x's order: one for an integer; where `several`
    are allowed, also those of a tuple or list, and all for None.

    Raises TypeError for anything else, ValueError for axes that x lacks, an axis named twice
    and an empty tuple, which NumPy takes for no axis and PyTorch for all.
    """
    if axis is None and several:
        return tuple(range(len(shape)))
    numbers = tuple(axis) if several and isinstance(axis, tuple | list) else (axis,)
    numbers = tuple(as_count(number, "axis", least=-(2**63)) for number in numbers)
    for number in numbers:
        if not -len(shape) <= number < len(shape):
            raise ValueError(f"x has shape {shape}: it has no axis {number}.")
    chosen = tuple(sorted({number % len(shape) for number in numbers}))
    if len(chosen) < len(numbers) or not chosen:
        problem = "names an axis twice" if numbers else "is empty: None stands for all axes"
        raise ValueError(f"axis {axis!r} {problem}.")
    return chosen


def along(
    inputs: dict[str, Any], axis: Any, whole: Collection[str] = ("x",), several: bool = True
) -> tuple[dict[str, Any], Restore]:
    """The inputs with these axes of x moved last and joined; and the inverse for an output.

    `whole`: the inputs of x's shape. The others have the result's shape, which lacks the axes.
    Raises as `axes_of` does, and ValueError for other shapes.
    """
    shape = inputs["x"].shape
    axes = axes_of(axis, shape, several)
    remaining = tuple(k for k in range(len(shape)) if k not in axes)
    leading, joined = (tuple(shape[k] for k in chosen) for chosen in (remaining, axes))
    moved = {}
    for name, array in inputs.items():
        wanted = shape if name in whole else leading
        if array is not None and array.shape != wanted:
            expected = f"x {shape}" if name in whole else f"the result {leading}"
            raise ValueError(f"{name} has shape {array.shape} and {expected}: they must be equal.")
        if array is not None and name in whole:
            array = array.transpose(remaining + axes).reshape(*leading, math.prod(joined))
        moved[name] = array

    def restore(name: str, array: Array) -> Array:
        if array.ndim == len(leading):
            return array
        return array.reshape(leading + joined).transpose(np.argsort(remaining + axes))

    return moved, restore
