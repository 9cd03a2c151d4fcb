"""NaN and infinities that take no part in an element: what a mask drops, a key that is not seen.

The definition multiplies such an input by 0, which gives NaN; a kernel that selects never reads it.
Both are right. So where the exact value is NaN, a number is right too if any number in the place of
the NaN or infinity gives it: 0 does, and the largest of the input's numbers. Only an op with
integers or booleans among its inputs chooses what takes part; the zeros of a product are data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.op import Arrays, Direction, Op
from refkernels.truth import Truth

Array = npt.NDArray[Any]


def with_nan(
    op: Op,
    direction: Direction,
    output: str,
    got: Array,
    reference: Enclosure,
    inputs: Arrays,
    params: Mapping[str, Any],
) -> Array:
    """The answer, with NaN in the place of numbers that are right without what takes no part."""
    selected = np.isnan(reference.hi) & np.isfinite(to_float64(got))
    if not selected.any() or not {"bool", "int"} & {*op.kinds.values()}:
        return got
    for largest in (False, True):
        filled = {name: _filled(array, largest) for name, array in inputs.items()}
        truth = Truth(op, direction, filled, params, formats.of(got))
        error = np.abs(to_float64(got) - np.asarray(truth.reference[output]))
        selected = selected & (error <= truth.bound()[output])
    return np.where(selected, got.dtype.type(np.nan), got)


def _filled(array: Any, largest: bool) -> Any:
    """An input with 0, or its largest number, in the place of NaN and infinities."""
    if isinstance(array, list | tuple):
        return [_filled(part, largest) for part in array]
    if array is None or not formats.is_one(array.dtype):
        return array
    size = np.abs(to_float64(array))
    finite = np.isfinite(size)
    number = np.max(size, where=finite, initial=0.0) or 1.0
    return np.where(finite, array, array.dtype.type(largest * number))
