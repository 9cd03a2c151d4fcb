"""The working-precision algorithms of elementwise functions, in any format.

float32 and float64 run in their own arithmetic; float16 and bfloat16 run in float32, rounded once
at the end.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import in_default_mode
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Array, Function


@in_default_mode
def forward_plain(function: Function, x: Any, *, format: Format | str) -> Array:
    """f(x) by the plain algorithm in the format, shaped like x; no bound. Raises as
    `oracle.forward` does, and ValueError for an unknown format."""
    target = formats.get(format)
    with np.errstate(all="ignore"):
        x = formats.cast(as_float_array(x, "x"), target)
        return formats.cast(function.plain(_working(x)), target)


@in_default_mode
def backward_plain(function: Function, dy: Any, x: Any, *, format: Format | str) -> Array:
    """fl(dy f'(x)) by the plain algorithm in the format, shaped like x; no bound. Raises as
    `oracle.backward` does, and ValueError for an unknown format."""
    target = formats.get(format)
    dy, x = oracle.pair_of(dy, x)
    with np.errstate(all="ignore"):
        dy, x = (_working(formats.cast(array, target)) for array in (dy, x))
        return formats.cast(dy * function.plain_slope(x), target)


def _working(array: Array) -> Array:
    return array if array.dtype == np.float64 else array.astype(np.float32)
