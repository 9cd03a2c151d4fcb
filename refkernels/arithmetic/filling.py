"""Arrays of a function's double-doubles, made from the function of one number."""

import functools
from typing import Any

from refkernels.arithmetic.jit import Kernel, njit


@functools.cache
def filled(value: Any, *fixed: Any) -> Kernel:
    """fill(x, hi, lo, radius, scale): value(*fixed, x_i) for every element, where that kernel gives
    one element of each array. Of its branches only those are compiled that `fixed` leaves."""

    def fill(x: Any, hi: Any, lo: Any, radius: Any, scale: Any) -> None:
        for i in range(x.size):
            hi[i], lo[i], radius[i], scale[i] = value(*fixed, x[i])

    fill.__module__ = value.__module__  # whose sources go into it
    fill.__qualname__ += f".{value.__name__}"
    kernel: Kernel = njit(fill, nogil=True)
    return kernel
