"""Value: an array of some context. Its operators are the context's primitives.

A Python float in a formula would be rounded before the context sees it (1 - beta**step in float64
misses the truth of AdamW by 3.6e-15 of the update), so it raises TypeError: `xp.number(beta)` takes
it as the exact rational that it is. Integers are exact and need no `xp.number`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from refkernels.contexts.context import Context

Bools = npt.NDArray[np.bool_]

_REFLECTED = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "less": "__gt__",
    "greater": "__lt__",
    "less_equal": "__ge__",
    "equal": "__eq__",
    "greater_equal": "__le__",
}
"""Of a value to the right of a NumPy number, by the name of the ufunc that NumPy calls."""


class Value:
    """One array of a context; immutable by convention. Operators broadcast as NumPy's do."""

    __slots__ = ("context",)
    __hash__ = None  # type: ignore[assignment]

    context: Context

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def __bool__(self) -> NoReturn:
        raise _choice("A value")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **_: Any) -> Any:
        """The operator of a NumPy number on the left, which `lift` takes or refuses like one on the
        right; any other function of NumPy is refused."""
        reflected = _REFLECTED.get(ufunc.__name__)
        if reflected is not None and method == "__call__" and operands[1] is self:
            number = operands[0]
            number = number[()] if isinstance(number, np.ndarray) and not number.ndim else number
            return getattr(self, reflected)(number)
        name = "sum" if (ufunc, method) == (np.add, "reduce") else ufunc.__name__
        raise TypeError(
            f"A formula takes its functions from xp, not from NumPy: np.{name} is xp.{name} there, "
            "if docs/xp.md lists it."
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"A value has no {name!r}: a formula takes its functions from xp, as in "
                "xp.mean(x) for x.mean()."
            )

    def __add__(self, other: Any) -> Value:
        return self.context.add(self, self.context.lift(other))

    def __radd__(self, other: Any) -> Value:
        return self.context.add(self.context.lift(other), self)

    def __sub__(self, other: Any) -> Value:
        return self.context.subtract(self, self.context.lift(other))

    def __rsub__(self, other: Any) -> Value:
        return self.context.subtract(self.context.lift(other), self)

    def __mul__(self, other: Any) -> Value:
        return self.context.multiply(self, self.context.lift(other))

    def __rmul__(self, other: Any) -> Value:
        return self.context.multiply(self.context.lift(other), self)

    def __truediv__(self, other: Any) -> Value:
        return self.context.divide(self, self.context.lift(other))

    def __rtruediv__(self, other: Any) -> Value:
        return self.context.divide(self.context.lift(other), self)

    def __pow__(self, other: Any) -> NoReturn:
        raise TypeError("A formula has no **: write xp.square, xp.power(x, 3) or xp.real_power.")

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError(
            "A formula has no x[...]: write xp.take(x, index, axis) or xp.take_along_axis."
        )

    def __float__(self) -> NoReturn:
        raise TypeError(
            "A value is no Python number: a formula takes its functions from xp, such as xp.exp "
            "for math.exp."
        )

    def __neg__(self) -> Value:
        return self.context.negative(self)

    def __abs__(self) -> Value:
        return self.context.absolute(self)

    def __lt__(self, other: Any) -> Mask:
        return self.context.less(self, self.context.lift(other))

    def __gt__(self, other: Any) -> Mask:
        return self.context.less(self.context.lift(other), self)

    def __le__(self, other: Any) -> Mask:
        return ~(self > other)

    def __ge__(self, other: Any) -> Mask:
        return ~(self < other)

    def __eq__(self, other: object) -> Any:
        raise TypeError(
            "Values are not compared with ==: in most contexts an interval cannot tell. "
            "Use < and >, or decide exact zeros by structure."
        )


@dataclass(frozen=True)
class Mask:
    """The result of a comparison: where it certainly holds, and where it certainly does not. Where
    neither is certain, `where` takes the union of both branches."""

    yes: Bools
    no: Bools

    def __bool__(self) -> NoReturn:
        raise _choice("A comparison")

    def __invert__(self) -> Mask:
        return Mask(self.no, self.yes)

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.yes & other.yes, self.no | other.no)

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.yes | other.yes, self.no & other.no)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.yes.shape

    @property
    def decided(self) -> Bools:
        return self.yes | self.no


def taken(value: Value) -> Value:
    """An argument of a context, which is a value. Raises TypeError for anything else."""
    if not isinstance(value, Value):
        raise not_a_value(value)
    return value


def not_a_value(value: Any) -> TypeError:
    """The error for an argument that is not a value of the context."""
    if isinstance(value, Value):
        return TypeError(
            f"A value of {value.context.name} meets another context's: all arrays of a formula "
            "come from the xp that is passed to it."
        )
    written, description = "...", f"a value of type {type(value).__name__}"
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        written = repr(value.item() if isinstance(value, np.number) else value)
        description = f"the {type(value).__name__} {written}"
    return TypeError(
        f"xp's functions take xp's values, and one was given {description}: write "
        f"xp.number({written}), which is exact."
    )


def _choice(subject: str) -> TypeError:
    """The error for Python's `if`, `and`, `or`, `not`, `max` and `min`, which decide once for all
    elements."""
    return TypeError(
        f"{subject} differs from element to element, so Python's if, and, or, max and min cannot "
        "decide by it: write xp.where(mask, a, b), xp.maximum, xp.minimum, or &, | and ~."
    )
