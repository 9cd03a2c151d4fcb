"""Context: the names that a formula finds in `xp`.

Shapes. A formula sees canonical axes; a reduction goes over the last axis and keeps it (length 1),
so that its result broadcasts against what was reduced. `axis` names another one.

A context must define the primitives. What follows from them is defined here, once.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from numbers import Integral, Rational
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.grids import NumberGrid, Ties, grid
from refkernels.contexts.value import Mask, Value, taken

V = TypeVar("V", bound=Value)
Index = npt.NDArray[np.integer[Any]]


def _of_some(reduction: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction that raises ValueError over no elements, where it has no value."""

    @functools.wraps(reduction)
    def reduce(self: Context, a: Value, axis: int = -1) -> Any:
        if not -len(taken(a).shape) <= axis < len(a.shape):
            raise ValueError(f"xp.{reduction.__name__} has no axis {axis} in the shape {a.shape}.")
        if not a.shape[axis]:
            raise ValueError(
                f"xp.{reduction.__name__} goes over axis {axis} of the shape {a.shape}, which has "
                "no elements: there is no such number."
            )
        return reduction(self, a, axis)

    return reduce


def _function(name: str, text: str) -> Callable[[Any, Value], Any]:
    """The method of a function of one number."""

    def method(self: Context, a: Value) -> Any:
        return self.function(name, a)

    method.__name__, method.__doc__ = name, text
    return method


class Context(ABC):
    """The primitives and what follows from them. `name` appears in messages."""

    name: str

    def __init_subclass__(cls) -> None:
        """Makes max, mean and pivot raise over no elements, however a context computes them."""
        super().__init_subclass__()
        for name in ("max", "mean", "pivot"):
            if name in vars(cls):
                setattr(cls, name, _of_some(vars(cls)[name]))

    if not TYPE_CHECKING:  # where every name would exist

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"xp has no {name!r}: docs/xp.md lists what it has.")

    # --- into the context --------------------------------------------------------------------

    @abstractmethod
    def array(self, values: npt.NDArray[Any]) -> Value:
        """An input: its elements are exact, whatever their format."""

    @abstractmethod
    def number(self, value: Any) -> Value:
        """A param or literal, exactly: an integer, a fraction, or the rational that a float is."""

    @abstractmethod
    def pi(self) -> Value:
        """The number π."""

    def lift(self, other: Any) -> Value:
        """An operand of an operator: a Value of this context, or an integer.

        Raises TypeError for anything else, a float above all.
        """
        if isinstance(other, Value):
            if other.context is not self:
                raise TypeError(
                    f"A value of {other.context.name} meets one of {self.name}: all arrays of a "
                    "formula come from the xp that is passed to it."
                )
            return other
        if isinstance(other, Integral) and not isinstance(other, bool | np.bool_):
            return self.number(int(other))
        raise TypeError(
            "A formula computes with xp's values and with integers, not with a "
            f"{type(other).__name__}: write xp.number(...), which takes a float exactly."
        )

    # --- arithmetic --------------------------------------------------------------------------

    @abstractmethod
    def add(self, a: Value, b: Value) -> Value:
        """a + b."""

    @abstractmethod
    def multiply(self, a: Value, b: Value) -> Value:
        """a b."""

    @abstractmethod
    def divide(self, a: Value, b: Value) -> Value:
        """a / b."""

    @abstractmethod
    def negative(self, a: Value) -> Value:
        """-a."""

    @abstractmethod
    def absolute(self, a: Value) -> Value:
        """|a|."""

    def subtract(self, a: Value, b: Value) -> Value:
        """a - b."""
        return self.add(a, self.negative(b))

    def square(self, a: Value) -> Value:
        """a², known to be >= 0."""
        return self.multiply(a, a)

    @abstractmethod
    def power(self, a: Value, exponent: int) -> Value:
        """a^exponent for an integer exponent."""

    def real_power(self, a: Value, exponent: Value) -> Value:
        """a^exponent for a > 0."""
        return self.exp(self.multiply(exponent, self.log(a)))

    # --- functions ---------------------------------------------------------------------------

    @abstractmethod
    def primitive(self, name: str, a: Value) -> Value:
        """The function of that name, one of those below."""

    def function(self, name: str, a: Value) -> Any:
        """A function of one number, one of those below or defined by them."""
        if name in FUNCTIONS:
            return self.primitive(name, a)
        from refkernels.contexts.functions import record

        return record(name).formula(self, a)

    sqrt = _function("sqrt", "√a for a >= 0.")
    rsqrt = _function("rsqrt", "1 / √a for a > 0.")
    exp = _function("exp", "e^a.")
    expm1 = _function("expm1", "e^a - 1.")
    log = _function("log", "The natural logarithm of a > 0.")
    log1p = _function("log1p", "log(1 + a) for a > -1.")
    tanh = _function("tanh", "The hyperbolic tangent.")
    erf = _function("erf", "The error function.")
    erfc = _function("erfc", "1 - erf a.")
    sin = _function("sin", "The sine of an angle in radians.")
    cos = _function("cos", "The cosine of an angle in radians.")
    atan = _function("atan", "The arctangent in (-π/2, π/2).")

    def logaddexp(self, a: Value, b: Value, log1p: bool = True) -> Value:
        """log(e^a + e^b); without `log1p` a kernel takes log(1 + e^-|a - b|) itself."""
        smaller = self.exp(self.negative(self.absolute(self.subtract(a, b))))
        above = self.log1p(smaller) if log1p else self.log(self.add(self.number(1), smaller))
        return self.add(self.maximum(a, b), above)

    def library(
        self, formula: Callable[..., Value], limit: int, inputs: Sequence[Value], *beside: Any
    ) -> Value:
        """formula(xp, *inputs, *beside) as the result of a library function that kernels call:
        within `limit` ulp, however it is computed. Kernels have the inputs exactly; `beside` holds
        what only the formula uses."""
        return formula(self, *inputs, *beside)

    # --- sums and reductions -----------------------------------------------------------------

    @abstractmethod
    def sum(self, a: Value, axis: int = -1) -> Value:
        """The sum over the axis, which is kept; 0 of nothing."""

    @abstractmethod
    def max(self, a: Value, axis: int = -1) -> Value:
        """The largest over the axis, which is kept. Raises ValueError if there is none."""

    def share_of_max(self, a: Value, largest: Value, axis: int = -1) -> Value:
        """1 / m at the m elements that are the axis' largest, 0 elsewhere; anything from 0 to 1
        where the context cannot tell which those are."""
        smaller = self.less(a, largest)
        candidates = ~smaller.yes
        count = candidates.sum(axis=axis, keepdims=True)
        tied = (smaller.no | smaller.yes).all(axis=axis, keepdims=True)
        decided = np.broadcast_to(tied | (count == 1), a.shape)
        zero, one = self.number(0), self.number(1)
        share = self.where(decided, self.broadcast(one / self.array(count), a.shape), one)
        return self.where(Mask(smaller.yes, candidates & decided), zero, share)

    @_of_some
    def mean(self, a: Value, axis: int = -1) -> Value:
        """The sum over the axis divided by its length. Raises ValueError where that is 0."""
        return self.divide(self.sum(a, axis), self.number(a.shape[axis]))

    def norm(self, a: Value, axis: int = -1) -> Value:
        """(sum a²)^(1/2)."""
        return self.sqrt(self.sum(self.square(a), axis))

    @abstractmethod
    def cumsum(self, a: Value, axis: int = -1) -> Value:
        """For each element the sum of all elements up to it, itself included."""

    def prod(self, a: Value, axis: int = -1) -> Value:
        """The product, here in pairs; 1 of nothing."""
        if not taken(a).shape[axis]:
            return self.array(
                np.ones([1 if k == axis % len(a.shape) else n for k, n in enumerate(a.shape)])
            )
        while a.shape[axis] > 1:
            first, second, unpaired = self._paired(a, axis)
            a = self.concatenate([self.multiply(first, second), unpaired], axis)
        return a

    def others(self, a: Value, axis: int = -1) -> Value:
        """For each element the product of all others, without a division."""
        if taken(a).shape[axis] < 2:
            return self.array(np.ones(a.shape))
        first, second, unpaired = self._paired(a, axis)
        pairs = first.shape[axis]
        beyond = self.others(self.concatenate([self.multiply(first, second), unpaired], axis), axis)
        above = self.take(beyond, np.arange(pairs), axis)
        last = self.take(beyond, np.arange(pairs, beyond.shape[axis]), axis)
        return self.concatenate(
            [self.multiply(above, second), self.multiply(above, first), last], axis
        )

    def _paired(self, a: Value, axis: int) -> list[Value]:
        """Two halves, and the last element of an odd number."""
        n = a.shape[axis]
        ends = ((0, n // 2), (n // 2, n - n % 2), (n - n % 2, n))
        return [self.take(a, np.arange(*end), axis) for end in ends]

    def welford(self, a: Value, axis: int = -1) -> tuple[Value, Value]:
        """The mean, and the sum of squared distances from it, by one pass: a kernel may
        stream (Welford) or merge parts (Chan)."""
        mean = self.mean(a, axis)
        return mean, self.sum(self.square(self.subtract(a, mean)), axis)

    @abstractmethod
    def matmul(self, a: Value, b: Value) -> Value:
        """Batched product of (..., m, k) and (..., k, n)."""

    def newton_schulz(self, x: Value, a: Value, b: Value, c: Value, steps: int) -> Value:
        """So many steps X -> a X + (b G + c G²) X with G = X Xᵀ, of numbers a, b and c."""
        axes = (*range(len(taken(x).shape) - 2), -1, -2)
        for _ in range(steps):
            gram = self.matmul(x, self.transpose(x, axes))
            factor = self.add(self.multiply(b, gram), self.multiply(c, self.matmul(gram, gram)))
            x = self.add(self.multiply(a, x), self.matmul(factor, x))
        return x

    @abstractmethod
    def pivot(self, a: Value, axis: int = -1) -> Value:
        """A number near the axis' maximum. It has no radius and derivative 0: allowed only where
        the result does not depend on it mathematically."""

    # --- what a kernel may do ----------------------------------------------------------------

    def store(self, a: Value) -> Value:
        """a, kept in the storage format: for a value that a kernel may keep narrow."""
        return taken(a)

    def saved(self, a: Value) -> Value:
        """`store`, of a value that the forward pass kept: all that a backward pass is given."""
        return self.store(a)

    def may_store(self, a: Value) -> Value:
        """a, which a kernel may keep in the storage format: either a or `store(a)`."""
        return self.either(a, self.store(a))

    def narrow(self, a: Value, format: str) -> Value:
        """a, kept in the format of that name, whatever the working and storage formats are."""
        return taken(a)

    def stop(self, a: Value) -> Value:
        """a, of which a gradient knows nothing: its derivative is 0."""
        return taken(a)

    def either(self, a: Value, b: Value) -> Value:
        """Two ways of computing the same value, either of which a kernel may take."""
        taken(b)
        return taken(a)

    # --- choice ------------------------------------------------------------------------------

    @abstractmethod
    def less(self, a: Value, b: Value) -> Mask:
        """Where a < b certainly holds, and where it certainly does not."""

    @abstractmethod
    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> Value:
        """a where the mask holds, b where it does not, the union of both where it cannot tell."""

    @abstractmethod
    def maximum(self, a: Value, b: Value) -> Value:
        """The larger of a and b, element by element."""

    def minimum(self, a: Value, b: Value) -> Value:
        """The smaller of a and b, element by element."""
        return self.negative(self.maximum(self.negative(a), self.negative(b)))

    def clip(self, a: Value, low: Any, high: Any) -> Value:
        """min(max(a, low), high); the ends are values or integers."""
        return self.minimum(self.maximum(a, self.lift(low)), self.lift(high))

    # --- rounding as a part of the definition -------------------------------------------------

    @abstractmethod
    def step(self, a: Value, grid: NumberGrid) -> Value:
        """a rounded to a grid, as `round`. Its derivative is 0."""

    def round(self, a: Value, to: str = "", ties: Ties = "even") -> Value:
        """a rounded to the whole numbers, or to those of a dtype, such as "float8_e4m3fn" or
        "int8"; a number beyond them becomes the nearest end. `ties`: to the nearest, of two the
        "even" one, the one "away" from zero or the upper one ("half_up"); or toward "zero",
        "down" or "up"."""
        return self.step(a, grid(to, ties))

    def quotient(self, a: Value, b: Value) -> Value:
        """a / b in front of a rounding to a grid: a kernel may take a (1 / b). Quotients that are
        float64 numbers are exact, so that a tie is one."""
        return self.divide(a, b)

    def floor(self, a: Value) -> Value:
        """The largest whole number that is at most a."""
        return self.round(a, ties="down")

    # --- shape -------------------------------------------------------------------------------

    @abstractmethod
    def rearrange(self, change: Any, *values: Value) -> Value:
        """change(*arrays) applied to every part of the values; it may only move elements."""

    def reshape(self, a: Value, shape: Sequence[int]) -> Value:
        """The elements in C order in another shape."""
        return self.rearrange(lambda part: part.reshape(tuple(shape)), a)

    def transpose(self, a: Value, axes: Sequence[int]) -> Value:
        """Axis k of the result is axis axes[k] of a."""
        return self.rearrange(lambda part: part.transpose(tuple(axes)), a)

    def broadcast(self, a: Value, shape: Sequence[int]) -> Value:
        """a repeated to the shape, as NumPy broadcasts."""
        return self.rearrange(lambda part: np.broadcast_to(part, tuple(shape)), a)

    def concatenate(self, values: Sequence[Value], axis: int = -1) -> Value:
        """One value after the other along an axis."""
        return self.rearrange(lambda *parts: np.concatenate(parts, axis=axis), *values)

    def take(self, a: Value, index: Index, axis: int = 0) -> Value:
        """The slices of a at the integers of index along the axis."""
        return self.rearrange(lambda part: np.take(part, index, axis=axis), a)

    def take_along_axis(self, a: Value, index: Index, axis: int = -1) -> Value:
        """np.take_along_axis: the elements of a at integers, such as the score of each row's
        class."""
        return self.rearrange(lambda part: np.take_along_axis(part, index, axis=axis), a)

    @abstractmethod
    def scatter_add(self, a: Value, index: Index, length: int) -> Value:
        """Row i of the result, of `length`, is the sum of the rows j of a with index[j] = i."""


FUNCTIONS = (
    "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "tanh", "erf", "erfc", "sin", "cos", "atan",
)  # fmt: skip


def fraction(value: Any) -> Fraction:
    """The exact rational value of a param. Raises TypeError for anything but a real number,
    ValueError for NaN and infinities."""
    if isinstance(value, float | np.floating):  # first, as the elements of arrays are
        if not math.isfinite(value):
            raise ValueError(f"A formula's params must be finite, and {value} is not.")
        return Fraction(float(value))
    if isinstance(value, bool | np.bool_):
        raise TypeError(
            f"{bool(value)} is not a number: a formula's params are integers and floats."
        )
    if isinstance(value, Rational):
        return Fraction(value)
    raise TypeError(f"A formula's params must be real numbers, not {type(value).__name__}.")
