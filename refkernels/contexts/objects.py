"""The base of the contexts whose arrays hold Python objects: exact fractions, Arb's balls.

NumPy's object arrays broadcast and reduce with the objects' own operators, so a rule is written
once for one number. A sum is taken in order: exact in `Rational`, and inside its ball in `Arb`.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.exact_sums import exact_sum
from refkernels.contexts.context import Context, Index
from refkernels.contexts.value import Mask, Value, not_a_value

Objects = npt.NDArray[Any]
LONG = 4096
"""Terms of floats that are added as integers."""


class ObjectValue(Value):
    """An object array."""

    __slots__ = ("data",)

    def __init__(self, context: Objectwise, data: Objects) -> None:
        self.context = context
        self.data = data

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape


class Waiting(ObjectValue):
    """Finite floats, made into objects when first asked for: long sums of them need none."""

    __slots__ = ("elements", "floats")

    def __init__(self, context: Objectwise, floats: npt.NDArray[Any]) -> None:
        self.context, self.floats = context, floats
        self.elements: Objects | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.floats.shape

    @property
    def data(self) -> Objects:  # type: ignore[override]
        assert isinstance(self.context, Objectwise)
        if self.elements is None:
            elements = [self.context.element(x) for x in self.floats.reshape(-1).tolist()]
            self.elements = objects(elements, self.shape)
        made: Objects = self.elements
        return made


def objects(elements: list[Any], shape: tuple[int, ...]) -> Objects:
    """An object array of these elements, in C order."""
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(shape)


class Objectwise(Context):
    """Rules in terms of one element's operators."""

    @abstractmethod
    def element(self, value: Any) -> Any:
        """One exact number as the context's object."""

    @abstractmethod
    def compare(self, a: Any, b: Any) -> tuple[bool, bool]:
        """(certainly a < b, certainly not)."""

    @abstractmethod
    def larger(self, a: Any, b: Any) -> Any:
        """max(a, b) of two elements."""

    @abstractmethod
    def union(self, a: Any, b: Any) -> Any:
        """An element that contains both."""

    def array(self, values: npt.NDArray[Any]) -> ObjectValue:
        wide = np.asarray(values)
        wide = wide if wide.dtype.kind in "iu" else wide.astype(np.float64)
        if wide.dtype == np.float64 and wide.size >= LONG and np.isfinite(wide).all():
            return Waiting(self, wide)
        return self.value(objects([self.element(x) for x in wide.reshape(-1).tolist()], wide.shape))

    def number(self, value: Any) -> ObjectValue:
        return self.value(objects([self.element(value)], ()))

    def value(self, data: Any) -> ObjectValue:
        """The Value of an object array; NumPy hands back a bare element for a 0-d result."""
        return ObjectValue(self, data if isinstance(data, np.ndarray) else objects([data], ()))

    def each(self, rule: Callable[..., Any], *values: Value) -> ObjectValue:
        """A rule for one element, applied to all, broadcast."""
        results = np.frompyfunc(rule, len(values), 1)(*(data(value) for value in values))
        return self.value(results)

    def add(self, a: Value, b: Value) -> Value:
        return self.value(data(a) + data(b))

    def multiply(self, a: Value, b: Value) -> Value:
        return self.value(data(a) * data(b))

    def divide(self, a: Value, b: Value) -> Value:
        return self.each(operator.truediv, a, b)

    def negative(self, a: Value) -> Value:
        return self.value(-data(a))

    def absolute(self, a: Value) -> Value:
        return self.each(abs, a)

    def sum(self, a: Value, axis: int = -1) -> Value:
        if isinstance(a, Waiting) and a.shape[axis] >= LONG:
            rows = np.moveaxis(a.floats, axis, -1)
            sums = (exact_sum(row) for row in rows.reshape(-1, a.shape[axis]))
            exact = [self.element(Fraction(m) * Fraction(2) ** e) for m, e in sums]
            return self.value(np.expand_dims(objects(exact, rows.shape[:-1]), axis))
        return self.value(np.add.reduce(data(a), axis=axis, keepdims=True, initial=self.zero))

    @property
    def zero(self) -> Any:
        return self.element(0)

    def max(self, a: Value, axis: int = -1) -> Value:
        larger = np.frompyfunc(self.larger, 2, 1)
        return self.value(larger.reduce(data(a), axis=axis, keepdims=True))

    def cumsum(self, a: Value, axis: int = -1) -> Value:
        return self.value(np.add.accumulate(data(a), axis=axis))

    def matmul(self, a: Value, b: Value) -> Value:
        return self.value(np.matmul(data(a), data(b)))

    def less(self, a: Value, b: Value) -> Mask:
        yes, no = np.frompyfunc(self.compare, 2, 2)(data(a), data(b))
        return Mask(np.asarray(yes, bool), np.asarray(no, bool))

    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> Value:
        if not isinstance(mask, Mask):
            return self.value(np.where(mask, data(a), data(b)))
        chosen = np.where(mask.yes, data(a), data(b))
        if mask.decided.all():
            return self.value(chosen)
        first, second, chosen = np.broadcast_arrays(data(a), data(b), chosen)
        left, values = np.broadcast_to(~mask.decided, chosen.shape), np.array(chosen)
        values[left] = np.frompyfunc(self.union, 2, 1)(first[left], second[left])
        return self.value(values)

    def maximum(self, a: Value, b: Value) -> Value:
        return self.each(self.larger, a, b)

    def rearrange(self, change: Any, *values: Value) -> Value:
        return self.value(change(*(data(value) for value in values)))

    def scatter_add(self, a: Value, index: Index, length: int) -> Value:
        rows = data(a)
        total = np.full((length, *rows.shape[1:]), self.zero, object)
        np.add.at(total, index, rows)
        return self.value(total)


def data(value: Value) -> Objects:
    """The object array of a Value."""
    if not isinstance(value, ObjectValue):
        raise not_a_value(value)
    return value.data
