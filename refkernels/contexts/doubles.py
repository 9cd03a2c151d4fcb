"""Doubles: a formula in NumPy's float64, as fast as it comes.

For searches, which read a formula thousands of times and ask the oracle about what they find. Sums
and products of matrices are in NumPy's own order, functions are NumPy's and the C library's. No
kernel is modelled by it, and nothing is certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas
from refkernels.contexts.context import FUNCTIONS, Context, Index
from refkernels.contexts.value import Value
from refkernels.contexts.working import Array, RoundedArithmetic, RoundedValue, data

Arrays = npt.NDArray[np.float64]


def _each(function: Callable[[float], float]) -> Callable[[Arrays], Arrays]:
    """The array function of a function of numbers."""
    apply = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(apply(x), np.float64)


NUMPY: dict[str, Callable[[Arrays], Arrays]] = {
    **{name: getattr(np, name) for name in FUNCTIONS if hasattr(np, name)},
    "atan": np.arctan,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
}
"""Every function of float64 arrays, as NumPy or the C library computes it."""


class Doubles(RoundedArithmetic):
    """NumPy's float64."""

    def __init__(self) -> None:
        super().__init__("float64")
        self.name = "Doubles"

    def plus(self, a: Array, b: Array) -> Array:
        return np.asarray(a + b)

    def times(self, a: Array, b: Array) -> Array:
        return np.asarray(a * b)

    def value(self, array: Any) -> RoundedValue:
        return RoundedValue(self, np.asarray(array, np.float64))

    def primitive(self, name: str, a: Value) -> RoundedValue:
        with np.errstate(all="ignore"):
            return self.value(NUMPY[name](data(a)))

    library, welford = Context.library, Context.welford  # type: ignore[assignment]

    def sum(self, a: Value, axis: int = -1) -> RoundedValue:
        return self._with(lambda part: np.sum(part, axis=axis, keepdims=True), a)

    def matmul(self, a: Value, b: Value) -> RoundedValue:
        return self._with(blas.product, a, b)

    def scatter_add(self, a: Value, index: Index, length: int) -> RoundedValue:
        if (rows := data(a)).ndim == 1:
            return self.value(np.bincount(index.reshape(-1), rows, length))
        total = np.zeros((length, *rows.shape[1:]))
        with np.errstate(all="ignore"):
            np.add.at(total, index.reshape(-1), rows)
        return self.value(total)

    def prod(self, a: Value, axis: int = -1) -> RoundedValue:
        return self._with(lambda part: np.prod(part, axis=axis, keepdims=True), a)
