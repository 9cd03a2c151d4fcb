"""A kernel as Python itself runs it: for so few elements that compiling it would take longer.

The operations are the same IEEE ones, so are the bits. See `small` for when that is done.
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
    """The kernel's function, which calls the functions of the kernels that it names. Its numbers
    are NumPy's, whose divisions by zero are infinities; records need `as_records`."""
    function = kernel.py_func
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    replaced: dict[str, Any] = {
        name: interpreted(value) for name, value in named.items() if isinstance(value, Dispatcher)
    }
    replaced |= {name: _fma for name, value in named.items() if value is fused.fma}
    return FunctionType(function.__code__, {**function.__globals__, **replaced})


def as_records(value: Any) -> Any:
    """A view whose elements' fields are attributes, as they are in a kernel, of an array of
    records; what else it is, as it is."""
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
        return np.float64(a) * b + c  # with the sign that IEEE 754 gives
    try:
        return np.float64(float(exact))
    except OverflowError:
        return np.float64(math.inf if exact > 0 else -math.inf)
