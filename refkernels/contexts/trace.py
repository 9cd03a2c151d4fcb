"""Trace: an expression graph, from which kernels are generated.

A formula that is read in `Trace` gives terms: a primitive, its operands, an option (a function's
name, a param's exact value) and a shape. Equal terms are one term. Operations that a kernel over
rows cannot hold (products of matrices, sums over other axes than the last, moved elements) become
`opaque` terms: they matter only where a result needs them, as a tape's unused cotangents do not.

    xp = Trace()
    y = softmax(xp, xp.array(x))
    y.term, xp.arrays
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from refkernels.contexts.ball import Ball
from refkernels.contexts.context import FUNCTIONS, Context, Index, fraction
from refkernels.contexts.value import Mask, Value, not_a_value, taken

Shape = tuple[int, ...]


class Untraceable(ValueError):
    """The formula has no graph over rows; NumPy's contexts read it."""


@dataclass(frozen=True, eq=False)
class Term:
    """One node. `option`: what the primitive needs besides its operands."""

    op: str
    operands: tuple[Term, ...]
    option: Any
    shape: Shape


class Expression(Value):
    """A term as a formula's value."""

    __slots__ = ("term",)

    def __init__(self, context: Trace, term: Term) -> None:
        self.context = context
        self.term = term

    @property
    def shape(self) -> Shape:
        return self.term.shape


class Condition:
    """A term of truth values: half of a Mask."""

    __array_ufunc__ = None

    def __init__(self, trace: Trace, term: Term) -> None:
        self.trace = trace
        self.term = term

    @property
    def shape(self) -> Shape:
        return self.term.shape

    def __and__(self, other: Any) -> Condition:
        return self.trace.condition("and", self, other)

    def __or__(self, other: Any) -> Condition:
        return self.trace.condition("or", self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Condition:
        return self.trace.condition("not", self)

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"A formula that reads .{name} of a comparison has no graph over rows.")


class Trace(Context):
    """`arrays` are the inputs in the order in which the formula gets or makes them."""

    name = "Trace"

    def __init__(self) -> None:
        self.arrays: list[npt.NDArray[Any]] = []
        self._terms: dict[Any, Term] = {}

    def term(self, op: str, *operands: Term, option: Any = None, shape: Any = None) -> Term:
        """The one term of that kind."""
        if shape is None:
            shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        key = op, tuple(map(id, operands)), option, tuple(shape)
        if key not in self._terms:
            self._terms[key] = Term(op, operands, option, tuple(shape))
        return self._terms[key]

    def _apply(self, op: str, *values: Value, option: Any = None, shape: Any = None) -> Expression:
        return Expression(
            self, self.term(op, *(term_of(value) for value in values), option=option, shape=shape)
        )

    def condition(self, op: str, *operands: Any) -> Condition:
        """The condition `op` of conditions or arrays of truth values."""
        terms = []
        for operand in operands:
            if not isinstance(operand, Condition):
                operand = self._apply("truth", option=self._keep(operand), shape=operand.shape)
            terms.append(operand.term)
        return Condition(self, self.term(op, *terms))

    def _keep(self, values: npt.NDArray[Any]) -> int:
        for index, array in enumerate(self.arrays):
            if array is values:
                return index
        self.arrays.append(values)
        return len(self.arrays) - 1

    # --- into the context --------------------------------------------------------------------

    def array(self, values: npt.NDArray[Any]) -> Expression:
        values = np.asarray(values)
        if values.dtype.kind in "iu":
            values = Ball().array(values).mid
        return self._apply("array", option=self._keep(values), shape=values.shape)

    def number(self, value: Any) -> Expression:
        return self._apply("number", option=fraction(value), shape=())

    def pi(self) -> Expression:
        return self._apply("pi", shape=())

    def known(self, mid: float, radius: float) -> Expression:
        """A number whose ball is known before the kernel runs."""
        return self._apply("known", option=(mid, radius), shape=())

    def unknown(self, name: str) -> Expression:
        """A number that no kernel over rows knows; a result that needs it has no graph."""
        return self._opaque(name, shape=())

    # --- elements ----------------------------------------------------------------------------

    def add(self, a: Value, b: Value) -> Expression:
        return self._apply("add", a, b)

    def multiply(self, a: Value, b: Value) -> Expression:
        return self._apply("multiply", a, b)

    def divide(self, a: Value, b: Value) -> Expression:
        return self._apply("divide", a, b)

    def negative(self, a: Value) -> Expression:
        return self._apply("negative", a)

    def absolute(self, a: Value) -> Expression:
        return self._apply("absolute", a)

    def square(self, a: Value) -> Expression:
        return self._apply("square", a)

    def power(self, a: Value, exponent: int) -> Value:
        """By repeated squaring, as in Ball."""
        if exponent < 0:
            return self.divide(self.number(1), self.power(a, -exponent))
        if exponent < 2:
            return a if exponent else self.broadcast(self.number(1), a.shape)
        half = self.square(self.power(a, exponent // 2))
        return self.multiply(half, a) if exponent % 2 else half

    def function(self, name: str, a: Value) -> Expression:
        if name not in FUNCTIONS:
            raise ValueError(f"There is no function {name!r} in a formula.")
        return self._apply("function", a, option=name)

    # --- rows --------------------------------------------------------------------------------

    def _reduced(self, op: str, a: Value, axis: int) -> Value:
        axis = axis % len(taken(a).shape)
        if op != "pivot" and a.shape[axis] == 1:
            return a
        shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        last = axis == len(a.shape) - 1
        return self._apply(op if last else "opaque", a, option=(op, axis), shape=shape)

    def sum(self, a: Value, axis: int = -1) -> Value:
        return self._reduced("sum", a, axis)

    def max(self, a: Value, axis: int = -1) -> Value:
        return self._reduced("max", a, axis)

    def pivot(self, a: Value, axis: int = -1) -> Value:
        return self._reduced("pivot", a, axis)

    def cumsum(self, a: Value, axis: int = -1) -> Expression:
        return self._apply("opaque", a, option=("cumsum", axis))

    def matmul(self, a: Value, b: Value) -> Expression:
        batch = np.broadcast_shapes(taken(a).shape[:-2], taken(b).shape[:-2])
        shape = (*batch, a.shape[-2], b.shape[-1])
        return self._apply("opaque", a, b, option="matmul", shape=shape)

    # --- choice ------------------------------------------------------------------------------

    def less(self, a: Value, b: Value) -> Mask:
        """A Mask of conditions: certainly less, and certainly not."""
        terms = term_of(a), term_of(b)
        sides = [Condition(self, self.term(op, *terms)) for op in ("less", "not less")]
        return Mask(*cast(Any, sides))

    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> Expression:
        if isinstance(mask, Mask):
            yes, no = (self.condition("is", side) for side in (mask.yes, mask.no))
        else:
            yes, no = self.condition("is", mask), self.condition("not", mask)
        return Expression(self, self.term("where", yes.term, no.term, term_of(a), term_of(b)))

    def maximum(self, a: Value, b: Value) -> Expression:
        return self._apply("maximum", a, b)

    # --- shape -------------------------------------------------------------------------------

    def reshape(self, a: Value, shape: Any) -> Value:
        shape = tuple(shape)
        if -1 not in shape and _without_ones(shape) == _without_ones(taken(a).shape):
            return self._apply("broadcast", a, shape=shape)
        return super().reshape(a, shape)

    def broadcast(self, a: Value, shape: Any) -> Value:
        return self._apply("broadcast", a, shape=np.broadcast_shapes(taken(a).shape, tuple(shape)))

    def take_along_axis(self, a: Value, index: Index, axis: int = -1) -> Value:
        """One element of each row, by `pick`."""
        last = axis % len(taken(a).shape) == len(a.shape) - 1
        if not last or index.shape != (*a.shape[:-1], 1):
            return super().take_along_axis(a, index, axis)
        length = a.shape[-1]
        if index.size and not -length <= index.min() <= index.max() < length:
            raise IndexError(f"An index of {index.min()} to {index.max()} into rows of {length}.")
        return self._apply("pick", a, option=self._keep(index), shape=index.shape)

    def rearrange(self, change: Any, *values: Value) -> Expression:
        empty = (np.broadcast_to(np.float64(0.0), taken(value).shape) for value in values)
        return self._opaque("rearrange", *values, shape=change(*empty).shape)

    def scatter_add(self, a: Value, index: Index, length: int) -> Expression:
        shape = (length, *taken(a).shape[np.ndim(index) :])
        return self._opaque("scatter_add", a, shape=shape)

    def _opaque(self, name: str, *values: Value, shape: Any) -> Expression:
        """A term that keeps its operands but not its operation."""
        terms = tuple(term_of(value) for value in values)
        return Expression(self, Term("opaque", terms, name, tuple(shape)))


def term_of(value: Value) -> Term:
    """The term of a formula's value."""
    if not isinstance(value, Expression):
        raise not_a_value(value)
    return value.term


def _without_ones(shape: Shape) -> Shape:
    """The shape from its first axis on that is longer than 1."""
    first = next((k for k, length in enumerate(shape) if length != 1), len(shape))
    return shape[first:]


def in_order(outputs: list[Term]) -> list[Term]:
    """Every term that the outputs need, operands first; without recursion, since a tape is deep."""
    done: dict[Term, None] = {}
    waiting = [(output, False) for output in reversed(outputs)]
    while waiting:
        term, ready = waiting.pop()
        if ready:
            done[term] = None
        elif term not in done:
            waiting.append((term, True))
            waiting += [(operand, False) for operand in reversed(term.operands)]
    return list(done)
