"""The plain algorithms of elementwise functions, in any format: f and f', each rounded once.

float32 and float64 results are rounded in their own arithmetic; float16 and bfloat16 ones are
computed in float32 and rounded once more.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.formats import Format, working_format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Function
from refkernels.kernels.real_function import Array


@with_default_fenv
def forward_plain(function: Function, x: Any, *, format: Format | str) -> Array:
    """fl(f(x)) in the format, shaped like x. Raises as `oracle.forward` does, and ValueError for
    an unknown format."""
    target = formats.get(format)
    with np.errstate(all="ignore"):
        x = formats.cast(as_float_array(x, "x"), target).astype(working_format(target).storage)
        return formats.cast(_value(function, x), target)


@with_default_fenv
def backward_plain(function: Function, dy: Any, x: Any, *, format: Format | str) -> Array:
    """fl(dy fl(f'(x))) in the format, shaped like x. Raises as `oracle.backward` does, and
    ValueError for an unknown format."""
    target = formats.get(format)
    working = working_format(target)
    with np.errstate(all="ignore"):
        dy, x = (formats.cast(array, target) for array in oracle.pair_of(dy, x))
        slope = np.asarray(oracle.slopes(function, x, ("rounding", working)), dtype=working.storage)
        return formats.cast(dy.astype(slope.dtype) * slope, target)


def _value(function: Function, x: Array) -> Array:
    """f(x), rounded: float32 from the float64 tier, float64 from double-doubles."""
    if x.dtype == np.float64:
        return np.asarray(oracle.values(function, x))
    hi = np.empty(x.shape)
    function.fast.kernel(np.ascontiguousarray(x).reshape(-1), hi.reshape(-1))
    return hi.astype(np.float32)
