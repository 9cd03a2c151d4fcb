"""SignedZeros: binary64 arithmetic that tells which zeros have a sign that every right form gives.

IEEE 754 gives the product, the quotient and the odd function of a zero a sign, and a moved zero
keeps its own. A zero that is `made` has none: a sum, a difference (as -x and expm1 may be), a
literal, an absolute value, the larger of two zeros of other signs, the product of two, a number of
a format without -0. It gets the sign of `made`; one that is the same for both is determined.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.grids import NumberGrid
from refkernels.contexts.unbounded import Unbounded
from refkernels.contexts.value import Value
from refkernels.contexts.working import RoundedValue, data

Doubles = npt.NDArray[Any]
_ODD = ("sqrt", "tanh", "erf", "sin", "atan")


class SignedZeros(Unbounded):
    """`made`: 0.0 or -0.0. A result too small for binary64 is no zero."""

    def __init__(self, format: Any = None, scalars: Any = None, made: float = 0.0) -> None:
        super().__init__(underflow=True)
        self.made = made

    def _made(self, results: Any, where: Any = True) -> Doubles:
        """The results, whose zeros are made where that holds."""
        results = np.asarray(results)
        return np.where((results == 0.0) & where, self.made, results)

    def number(self, value: Any) -> RoundedValue:
        return self.value(self._made(data(super().number(value))))

    def plus(self, a: Doubles, b: Doubles) -> Doubles:
        return self._made(super().plus(a, b))

    def running(self, total: Doubles, terms: Doubles) -> Doubles:
        return self._made(super().running(total, terms))

    def matmul(self, a: Value, b: Value) -> RoundedValue:
        return self.value(self._made(data(super().matmul(a, b))))

    def multiply(self, a: Value, b: Value) -> RoundedValue:
        both = (data(a) == 0.0) & (data(b) == 0.0)
        return self.value(self._made(data(super().multiply(a, b)), both & (a is not b)))

    def negative(self, a: Value) -> RoundedValue:
        return self.value(self._made(data(super().negative(a))))

    def absolute(self, a: Value) -> RoundedValue:
        return self.value(self._made(data(super().absolute(a))))

    def primitive(self, name: str, a: Value) -> RoundedValue:
        results, zero = data(super().primitive(name, a)), (data(a) == 0.0) & (name in _ODD)
        return self.value(self._made(np.where(zero, data(a), results), ~zero))

    def step(self, a: Value, grid: NumberGrid) -> RoundedValue:
        return self.value(self._made(data(super().step(a, grid)), not grid.signed_zero))

    def max(self, a: Value, axis: int = -1) -> RoundedValue:
        results = data(super().max(a, axis))
        signs = np.where(data(a) == 0.0, np.copysign(1.0, data(a)), np.nan)
        ends = (end.reduce(signs, axis, keepdims=True) for end in (np.fmin, np.fmax))
        both = np.not_equal(*ends)
        return self.value(self._made(results, both))

    def maximum(self, a: Value, b: Value) -> RoundedValue:
        return self._larger(np.maximum, a, b)

    def minimum(self, a: Value, b: Value) -> RoundedValue:
        return self._larger(np.minimum, a, b)

    def either(self, a: Value, b: Value) -> RoundedValue:
        return self._larger(lambda first, second: first, a, b)

    def _larger(self, chosen: Any, a: Value, b: Value) -> RoundedValue:
        """One of a and b; where they are zeros of other signs, either of the two."""
        differ = np.signbit(data(a)) != np.signbit(data(b))
        both = (data(a) == 0.0) & (data(b) == 0.0)
        return self.value(self._made(chosen(data(a), data(b)), both & differ))
