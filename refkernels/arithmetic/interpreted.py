"""A kernel run by Python itself, for so few elements that compiling it would take longer.

The operations are the same IEEE operations, so the bits are the same. `small` says when.
"""

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from refkernels.arithmetic import fma as fused


@functools.cache
def interpreted(kernel: Any) -> Callable[..., Any]:
    """The kernel's Python function, which calls the Python functions of the kernels that it names.
    Its numbers are NumPy's, which divide by zero without an error; records need `as_records`."""
    function = kernel.py_func
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    replaced: dict[str, Any] = {
        name: interpreted(value) for name, value in named.items() if isinstance(value, Dispatcher)
    }
    replaced |= {name: _fma for name, value in named.items() if value is fused.fma}
    return FunctionType(function.__code__, {**function.__globals__, **replaced})


def as_records(value: Any) -> Any:
    """An array of records as a view whose elements have their fields as attributes, as in a
    kernel; anything else unchanged."""
    named = isinstance(value, np.ndarray) and value.dtype.names
    return value.view(np.recarray) if named else value


def _fma(a: Any, b: Any, c: Any) -> Any:
    """`fma.fma` of float64, by rationals."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return np.float64(a) * b + c
    if not math.isfinite(c):
        return np.float64(c)
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return np.float64(a) * b + c  # a zero with the sign of IEEE 754
    try:
        return np.float64(float(exact))
    except OverflowError:
        return np.float64(math.inf if exact > 0 else -math.inf)
