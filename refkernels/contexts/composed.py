"""Arithmetics that round differently from `RoundedArithmetic`.

Composed: an op made of a library's own ops in a 16-bit format. Each op computes in binary32, its
scalars and sums too, and stores its result in the format, as libraries do. With `fma`, a product
that is added belongs to the same op: a + alpha b.

The others compute in one format: with functions in binary32, with another function, or flushed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import BINARY32, Format
from refkernels.contexts import functions
from refkernels.contexts.doubles import Doubles
from refkernels.contexts.value import Value
from refkernels.contexts.working import RoundedArithmetic, RoundedValue, data


class Composed(RoundedArithmetic):
    """Arithmetic in binary32, every result rounded to `format`; `options` are those of
    `RoundedArithmetic`."""

    def __init__(self, format: Format | str, **options: Any) -> None:
        super().__init__(BINARY32, format, **options)
        self._op = RoundedArithmetic(BINARY32, order=self.order)

    def value(self, array: Any) -> RoundedValue:
        stored = formats.cast(np.asarray(array), self.storage)
        return RoundedValue(self, formats.cast(stored, self.format))

    def unstored(self, array: Any) -> RoundedValue:
        return super().value(array)

    def mean(self, a: Value, axis: int = -1) -> RoundedValue:
        """One op."""
        return self.value(data(self._op.mean(self._op.value(data(a)), axis)))


class NarrowFunctions(RoundedArithmetic):
    """Arithmetic in `format`, the functions in binary32; `options` as in `RoundedArithmetic`."""

    def primitive(self, name: str, a: Value) -> RoundedValue:
        if name in ("sqrt", "rsqrt"):
            return super().primitive(name, a)
        argument = formats.cast(data(a), BINARY32)
        return self.value(functions.rounded(name, argument, BINARY32))


class OtherFunction(Doubles):
    """Binary64, with another function of arrays for the one called `instead` (exp, log, …)."""

    def __init__(self, instead: str, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._instead, self._function = instead, function

    def primitive(self, name: str, a: Value) -> RoundedValue:
        if name != self._instead:
            return super().primitive(name, a)
        return self.value(self._function(data(a)))


class Flushed(RoundedArithmetic):
    """Arithmetic in `format` with FTZ and DAZ; `options` as in `RoundedArithmetic`."""

    flushes = True

    def value(self, array: Any) -> RoundedValue:
        return super().value(self._flushed(data(super().value(array))))

    def plus(self, a: Any, b: Any) -> Any:
        return self._flushed(super().plus(a, b))

    def times(self, a: Any, b: Any) -> Any:
        return self._flushed(super().times(a, b))

    def running(self, total: Any, terms: Any) -> Any:
        """The partial sums. Only cancellation makes one subnormal; the next takes it as a zero."""
        sums: Any = super().running(total, terms)
        if not np.any((sums != 0.0) & (np.abs(sums) < self.format.min_normal)):
            return sums
        for k in range(terms.shape[-1]):
            total = sums[..., k] = self.plus(total, terms[..., k])
        return sums

    def _flushed(self, array: Any) -> Any:
        tiny = np.abs(array) < self.format.min_normal
        return np.where(tiny, np.copysign(array.dtype.type(0), array), array)
