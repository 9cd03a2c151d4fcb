"""A kernel run by Python itself, for so few elements that compiling it would take longer.

The operations are the same IEEE operations, so the bits are the same. `small` says when.
"""

import ctypes
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from refkernels.arithmetic import fma as fused
from refkernels.arithmetic.compiler import intrinsic
from refkernels.arithmetic.jit import Kernel


@functools.cache
def interpreted(kernel: Any) -> Callable[..., Any]:
    """The kernel's Python function, which calls the Python functions of the kernels that it names.
    Its numbers are NumPy's, which divide by zero without an error; records need `as_records`."""
    function = kernel.py_func
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    replaced: dict[str, Any] = {
        name: interpreted(value)
        for name, value in named.items()
        if isinstance(value, Kernel) and value is not kernel  # the name of math.sqrt is one too
    }
    for name, value in named.items():
        if value is math:
            replaced[name] = _MATH
        elif isinstance(value, intrinsic):
            replaced[name] = _fma if value is fused.fma else value.in_python
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    held = tuple(CellType(interpreted(v) if isinstance(v, Kernel) else v) for v in cells)
    known = {**function.__globals__, **replaced}
    return FunctionType(function.__code__, known, closure=held or None)


_MATH = SimpleNamespace(**vars(math))
_MATH.ldexp = lambda x, power: math.ldexp(x, int(power))
_MATH.sqrt = np.sqrt
"""math of NumPy's numbers, by whose zeros one may divide."""


def as_records(value: Any) -> Any:
    """An array of records as a view whose elements have their fields as attributes, as in a
    kernel; anything else unchanged."""
    named = isinstance(value, np.ndarray) and value.dtype.names
    return value.view(np.recarray) if named else value


def _fma(a: Any, b: Any, c: Any) -> Any:
    """`fma.fma` of float64."""
    return np.float64(_machine_fma()(a, b, c))


@functools.cache
def _machine_fma() -> Callable[[Any, Any, Any], float]:
    """C's fma, which rounds once (C99 7.12.13.1); by rationals where the library has none, or one
    that rounds twice."""
    try:
        fma: Any = ctypes.PyDLL(None).fma  # a call takes a fraction of a microsecond
    except (OSError, TypeError, AttributeError):
        return by_rationals
    fma.restype, fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    right = all(fma(*case) == by_rationals(*case) for case in _ROUNDED_TWICE)
    return fma if right else by_rationals


_ROUNDED_TWICE = (  # two roundings lose each of these; to 64 bits and then to 53, the second
    (1.0 + 2.0**-27, 1.0 - 2.0**-27, -1.0),
    (1.0 + 2.0**-52, 1.0 + 2.0**-52, 2.0**-53),
    (2.0**1000, 2.0**24, -(2.0**1023)),
)


def by_rationals(a: Any, b: Any, c: Any) -> float:
    """a b + c of float64, rounded once."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return float(np.float64(a) * b + c)
    if not math.isfinite(c):
        return float(c)
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return float(np.float64(a) * b + c)  # a zero with the sign of IEEE 754
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
