"""What the operators' rules share: kinds of values, dtypes, scalars, dimensions, movements.

A result of a node is

    Value       floats, in the context that the program is read in
    Low         floats of which some are -inf by construction: masked scores
    Mask        truth values that are computed from floats
    array       integers and truth values that depend on none

and a rule takes a `Call` first, which has the names of `xp`, and is written once for floats and for
whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.contexts.context import Context
from refkernels.contexts.gradient import Gradient, Taped, node
from refkernels.contexts.value import Mask, Value
from refkernels.programs.program import WHOLE, Dtype, ProgramError, Step, Tensor

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Low:
    """A value that is -inf where `low`; the numbers there have no meaning."""

    value: Value
    low: npt.NDArray[np.bool_]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape


def apart(*sides: Any) -> tuple[list[Any], list[Any]]:
    """The values, and where each is -inf."""
    lows = [side.low if isinstance(side, Low) else np.zeros(side.shape, bool) for side in sides]
    return [side.value if isinstance(side, Low) else side for side in sides], lows


class Integers:
    """What rules need of `xp`, on NumPy arrays of integers and truth values."""

    def number(self, value: Any) -> Any:
        return value

    def __getattr__(self, name: str) -> Any:
        if name in ("sum", "max", "prod"):
            return lambda a, axis=-1: getattr(np, name)(a, axis=axis, keepdims=True)
        if name in ("where", "maximum", "minimum", "square", "cumsum", "power"):
            return getattr(np, name)
        raise ProgramError(f"{name} of integers is not covered")


class Tape(Gradient):
    """Whose maxima are taken by pairs: at a tie certified contexts then enclose every slope between
    both sides', as conventions differ (evenly, or the first alone)."""

    def max(self, a: Value, axis: int = -1) -> Taped:
        if not a.shape[axis]:
            return super().max(a, axis)
        while (n := a.shape[axis]) > 1:
            ends = (0, n // 2), (n // 2, n - n % 2), (n - n % 2, n)
            left, right, rest = (self.take(a, np.arange(*two), axis) for two in ends)
            pairs = self.maximum(left, right)
            a = self.concatenate([pairs, rest], axis) if n % 2 else pairs
        return node(a)


@dataclass(frozen=True)
class Call:
    """One call while it is read. `operands`: the tensors among its arguments; `main`: the dtype of
    the program, whose results a kernel may store in its format."""

    xp: Any
    node: Step
    operands: tuple[Tensor, ...]
    main: str
    tensor: Tensor = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensor", self.node.tensor)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.xp, name)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def whole(self) -> Call:
        """The same call, of integers."""
        return Call(Integers(), self.node, self.operands, self.main)

    def refuse(self, why: str) -> ProgramError:
        return ProgramError(f"{self.node.operator} {why} ({self.node.place})")

    def either(self, a: Any, other: Callable[[], Any]) -> Any:
        """xp.either, whose second way is not computed where the context takes the first."""
        xp = self.xp
        while isinstance(xp, Gradient):
            xp = xp.below
        return a if type(xp).either is Context.either else self.xp.either(a, other())

    # --- kinds -------------------------------------------------------------------------------

    def scalar(self, number: Any) -> Any:
        """A Python number as the operator rounds it: to float32, or float64 where it computes in
        that."""
        if isinstance(self.xp, Integers):
            return number
        if isinstance(number, int | Fraction):  # True and False too
            return self.xp.number(Fraction(number))
        if not math.isfinite(number):
            raise self.refuse(f"takes {number}, which is no number")
        wide = any(tensor.dtype == "float64" for tensor in self.operands or (self.tensor,))
        with np.errstate(over="ignore"):
            rounded = number if wide else float(np.float32(number))
        return self.xp.number(rounded if math.isfinite(rounded) else number)

    def value(self, given: Any) -> Any:
        """Anything as floats."""
        if isinstance(given, Value | Low):
            return given
        if isinstance(given, Mask):
            return self.xp.where(given, self.xp.number(1), self.xp.number(0))
        if isinstance(given, np.ndarray):
            if isinstance(self.xp, Integers):
                return given
            return self.xp.array(given.astype(np.int8) if given.dtype == bool else given)
        return self.scalar(given)

    def plain(self, given: Any) -> Any:
        """Floats without infinities."""
        value = self.value(given)
        if isinstance(value, Low):
            raise self.refuse("takes a masked -inf, for which it has no rule")
        return value

    def truth(self, given: Any) -> Any:
        """Anything as truth values: other than 0."""
        if isinstance(given, Mask):
            return given
        if isinstance(given, np.ndarray):
            return given.astype(bool)
        value = self.plain(given)
        return (value < 0) | (value > 0)

    def index(self, given: Any) -> Array:
        """An array of integers that is known beforehand."""
        if not isinstance(given, np.ndarray):
            raise self.refuse("takes indices that are computed from floats")
        return given

    def stored(self, given: Any, tensor: Tensor) -> Any:
        """A result of floats in the format in which the program keeps it; so is its cotangent."""
        if isinstance(given, Low):
            return Low(self.stored(given.value, tensor), given.low)
        if tensor.dtype == self.main:
            keep: Callable[[Any, Value], Value] = lambda xp, a: xp.store(a)  # noqa: E731
        elif formats.get(tensor.dtype).p < formats.get(self.main).p:
            keep = lambda xp, a: xp.narrow(a, tensor.dtype)  # noqa: E731
        else:
            return given
        if not isinstance(self.xp, Gradient):
            return keep(self.xp, given)
        taped, below = node(given), self.xp.below
        return Taped(self.xp, keep(below, taped.value), (taped,), lambda g: (keep(below, g),))

    # --- elements that move --------------------------------------------------------------------

    def move(self, change: Callable[..., Any], *given: Any) -> Any:
        """change(*arrays), which moves elements, whatever they are."""
        if all(isinstance(item, np.ndarray) for item in given):
            return change(*given)
        if all(isinstance(item, Mask | np.ndarray) for item in given):
            moved = self.xp.rearrange(change, *map(self.value, given))
            return moved > self.xp.number(Fraction(1, 2))
        sides = [self.value(item) for item in given]
        values, lows = apart(*sides)
        moved = self.xp.rearrange(change, *values)
        return Low(moved, change(*lows)) if any(isinstance(side, Low) for side in sides) else moved

    def reshape(self, given: Any, shape: Sequence[int]) -> Any:
        if tuple(given.shape) == tuple(shape):
            return given
        if isinstance(given, Value):
            return self.xp.reshape(given, shape)
        return self.move(lambda a: np.reshape(a, tuple(shape)), given)

    def transpose(self, given: Any, axes: Sequence[int]) -> Any:
        return self.move(lambda a: np.transpose(a, tuple(axes)), given)

    def broadcast(self, given: Any, shape: Sequence[int]) -> Any:
        if tuple(given.shape) == tuple(shape):
            return given
        if isinstance(given, Value):
            return self.xp.broadcast(given, tuple(shape))
        return self.move(lambda a: np.broadcast_to(a, tuple(shape)), given)

    def take(self, given: Any, index: Any, axis: int) -> Any:
        return self.move(lambda a: np.take(a, index, axis=axis), given)

    # --- dimensions ----------------------------------------------------------------------------

    def rows(self, given: Any, dims: Any) -> Any:
        """The axes `dims`, all of them for None or [], as one, the last."""
        rank = len(given.shape)
        whole = dims is None or dims == [] or isinstance(dims, Dtype)
        listed = range(rank) if whole else [dims] if isinstance(dims, int) else dims
        chosen = sorted(dim % rank for dim in listed) if rank else []
        rest = [k for k in range(rank) if k not in chosen]
        order = [*rest, *chosen]
        moved = given if order == sorted(order) else self.transpose(given, order)
        return self.reshape(moved, (*moved.shape[: len(rest)], math.prod(moved.shape[len(rest) :])))

    def reduced(self, name: str, given: Any, dims: Any = None) -> Any:
        """A reduction of xp over the axes, in the shape of the result."""
        return self.reshape(getattr(self.xp, name)(self.rows(given, dims)), self.shape)


def numbers(rule: Callable[..., Any], operands: int = 2) -> Callable[..., Any]:
    """A rule that is written for numbers: its first operands are floats, or all are integers."""

    def read(call: Call, *arguments: Any) -> Any:
        first, rest = arguments[:operands], arguments[operands:]
        tensors = [item for item in first if not isinstance(item, int | float | None)]
        whole = call.tensor.dtype in WHOLE and all(isinstance(t, np.ndarray) for t in tensors)
        chosen = call.whole() if whole else call
        values = [None if item is None else chosen.plain(item) for item in first]
        return rule(chosen, *values, *rest)

    return read


def cast(call: Call, given: Any, dtype: str) -> Any:
    """To another dtype: integers are cut towards 0."""
    if dtype == "bool":
        return call.truth(given)
    if dtype in WHOLE and isinstance(given, Mask | np.ndarray):
        return given
    return call.round(call.plain(given), ties="zero") if dtype in WHOLE else call.value(given)


def equal(c: Any, a: Any, b: Any) -> Any:
    if isinstance(a, np.ndarray):
        return a == b
    return ~(a < b) & ~(b < a)
