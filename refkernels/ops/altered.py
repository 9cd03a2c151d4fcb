"""Formulas read in altered contexts: reductions that skip a part of an axis, means with another
divisor, and primitives whose results overflow a narrow format or are rounded to it. Loaded on first
use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import BINARY64, Format
from refkernels.contexts.working import Working, WorkingValue
from refkernels.ops.formula import Apart, Staged

_SHOWN = {
    "add": "x + y", "subtract": "x - y", "multiply": "x y", "divide": "x / y", "power": "x^n",
    "sum": "sum x", "mean": "sum x", "cumsum": "sum x", Working.matmul.__name__: "sum x y",
    "norm": "sum x²", "prod": "prod x", "square": "x²",
}  # fmt: skip


class _Partial:
    """A context whose reductions over an axis of length n skip a part; otherwise unchanged."""

    def __init__(self, context: Any, part: tuple[int, int, int, bool]) -> None:
        n, start, stop, counted = part
        self._context, self._n, self._counted = context, n, counted
        self._kept_indices = np.r_[0:start, stop:n]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def _kept(self, a: Any, axis: int) -> Any:
        return self._context.take(a, self._kept_indices, axis) if a.shape[axis] == self._n else a

    def sum(self, a: Any, axis: int = -1) -> Any:
        return self._context.sum(self._kept(a, axis), axis)

    def max(self, a: Any, axis: int = -1) -> Any:
        return self._context.max(self._kept(a, axis), axis)

    def norm(self, a: Any, axis: int = -1) -> Any:
        return self._context.norm(self._kept(a, axis), axis)

    def mean(self, a: Any, axis: int = -1) -> Any:
        left_in = self._kept(a, axis)
        terms = a if self._counted else left_in
        return self._context.sum(left_in, axis) / terms.shape[axis]

    def matmul(self, a: Any, b: Any) -> Any:
        return self._context.matmul(self._kept(a, -1), self._kept(b, -2))

    def welford(self, a: Any, axis: int = -1) -> Any:
        mean = self.mean(a, axis)
        return mean, self.sum(self._context.square(a - mean), axis)


def without(formula: Any, part: tuple[int, int, int, bool]) -> Any:
    """The formula with reductions that skip the part."""
    if isinstance(formula, Staged):
        return Staged(without(formula.statistics, part), without(formula.finish, part))
    if isinstance(formula, Apart):
        return Apart(tuple(f and without(f, part) for f in formula.formulas))

    @functools.wraps(formula, updated=())
    def read(xp: Any, /, *arguments: Any, **named: Any) -> Any:
        return formula(_Partial(xp, part), *arguments, **named)

    return read


class _Watched(Working):
    """float64; each primitive has a number, and its result may be changed."""

    def __init__(self) -> None:
        super().__init__(BINARY64)
        self.count, self.depth = 0, 0

    def noted(self, name: str, result: Any) -> Any:
        """Counts a primitive's result, and returns what takes its place."""
        if not isinstance(result, WorkingValue):
            return result
        self.count += 1
        changed = self.changed(name, result.data)
        return result if changed is None else self.value(changed)

    def changed(self, name: str, array: Any) -> Any:
        """What takes the place of primitive number `count`'s result; None for the result itself."""
        raise NotImplementedError


class _Overflowing(_Watched):
    """float64, except that results of the `chosen` primitive beyond the format's range are
    infinite. `beyond`: the names of the primitives that exceed the range somewhere, by number."""

    def __init__(self, format: Format, chosen: int, beyond: dict[int, str]) -> None:
        super().__init__()
        self.narrow_format, self.chosen, self.beyond = format, chosen, beyond

    def changed(self, name: str, array: Any) -> Any:
        size, end = np.abs(array), 2.0 * 2.0**self.narrow_format.emax
        large = np.isfinite(size) & (size >= end)
        if large.any():
            self.beyond.setdefault(self.count, name)
        if self.count != self.chosen:
            return None
        return np.where(large, np.copysign(np.inf, array), array)


class _Narrowed(_Watched):
    """float64, except that results of the `chosen` primitives are rounded to a format, after a
    change by the relative `nudge`. `inexact`: the names of the primitives whose results are not
    numbers of that format, by number; "" for one that overflows. A result that a formula computes
    again, as the last stage of a staged one does, is one result: its first number stands for all.
    """

    def __init__(
        self, format: Format, chosen: frozenset[int], inexact: dict[int, str], nudge: float
    ) -> None:
        super().__init__()
        self.narrow_format, self.chosen, self.inexact = format, chosen, inexact
        self.nudge = nudge
        self._first: dict[tuple[Any, bytes], int] = {}

    def changed(self, name: str, array: Any) -> Any:
        first = self._first.setdefault((array.shape, array.tobytes()), self.count)
        if first == self.count and self.inexact.get(first) != "":
            rounded = formats.cast(array, self.narrow_format).astype(np.float64)
            if np.any(np.isinf(rounded) & np.isfinite(array)):
                self.inexact[first] = ""
            elif not np.array_equal(rounded, array, equal_nan=True):
                self.inexact[first] = name
        if first not in self.chosen:
            return None
        return formats.cast(array * (1.0 + self.nudge), self.narrow_format)


def _watched(name: str) -> Callable[..., Any]:
    primitive = getattr(Working, name)

    def watched(self: _Watched, *arguments: Any, **named: Any) -> Any:
        self.depth += 1
        result = primitive(self, *arguments, **named)
        self.depth -= 1
        if self.depth:  # a part of another primitive
            return result
        is_square = name == "multiply" and arguments[0] is arguments[1]
        label = (
            f"{arguments[0]}(x)" if name == "function" else _SHOWN["square" if is_square else name]
        )
        return self.noted(label, result)

    return watched


for _name in (*_SHOWN, "function"):
    setattr(_Watched, _name, _watched(_name))


def overflowing(form: Any, format: Format, chosen: int, beyond: dict[int, str]) -> Any:
    """The formula in float64, except that results of its `chosen` primitive beyond the format's
    range are infinite. `beyond` receives the primitives, by number, that exceed the range
    somewhere."""
    return _within(form, lambda: _Overflowing(format, chosen, beyond))


def narrowed(
    form: Any, format: Format, chosen: frozenset[int], inexact: dict[int, str], nudge: float
) -> Any:
    """The formula in float64, except that results of its `chosen` primitives are rounded to the
    format, after a change by the relative `nudge`. `inexact` receives the primitives, by number,
    whose results the format does not hold somewhere; "" for those that overflow."""
    return _within(form, lambda: _Narrowed(format, chosen, inexact, nudge))


def _within(form: Any, context: Callable[[], Working]) -> Any:
    """The formula read in a context of its own."""

    def formula(xp: Any, /, **arguments: Any) -> Any:
        inner = context()
        return form(inner, **{name: _entered(inner, value) for name, value in arguments.items()})

    return formula


def _entered(xp: Working, value: Any) -> Any:
    """A value of another context, or a list of such values, converted to this context."""
    if isinstance(value, WorkingValue):
        return xp.value(value.data)
    if isinstance(value, list | tuple):
        return type(value)(_entered(xp, item) for item in value)
    return value


class _Averaged:
    """A context whose means over an axis of length n use another divisor; otherwise unchanged."""

    def __init__(self, context: Any, n: int, divisor: int) -> None:
        self._context, self._n, self._divisor = context, n, divisor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def mean(self, a: Any, axis: int = -1) -> Any:
        if a.shape[axis] != self._n:
            return self._context.mean(a, axis)
        return self._context.sum(a, axis) / self._divisor


def averaged(formula: Any, n: int, divisor: int) -> Any:
    """The formula with another divisor in its means over axes of length n."""
    if isinstance(formula, Staged):
        return Staged(
            averaged(formula.statistics, n, divisor), averaged(formula.finish, n, divisor)
        )
    if isinstance(formula, Apart):
        return Apart(tuple(f and averaged(f, n, divisor) for f in formula.formulas))

    @functools.wraps(formula, updated=())
    def read(xp: Any, /, *arguments: Any, **named: Any) -> Any:
        return formula(_Averaged(xp, n, divisor), *arguments, **named)

    return read
