"""The one way this project compiles a kernel: cached on disk, IEEE semantics, never fastmath.

`error_model="numpy"` makes x / 0 an infinity as IEEE 754 says, where Numba would raise.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

njit: Callable[..., Any] = functools.partial(numba.njit, cache=True, error_model="numpy")
prange = numba.prange


def check_subnormals() -> None:
    """Raise RuntimeError where this thread flushes subnormals: every bound here needs them.

    A library compiled with -ffast-math can set the processor's FTZ and DAZ bits at load time.
    """
    smallest_normal = np.float64(np.finfo(np.float64).tiny)
    if smallest_normal * np.float64(0.5) == 0.0:
        raise RuntimeError(
            "This process flushes subnormal numbers to zero, so no certificate would hold; "
            "a library loaded earlier set FTZ/DAZ: run refkernels in a process without it."
        )
