"""Signs: float64 balls that know the sign of a number too small for float64.

e^-1000 / s is positive, though its ball reaches to both sides of 0. A sign is 1, 0 or -1, or NaN
where it is not known: that of a ball without 0, else what the signs of the operands imply. A number
of which nothing is known, as an input that is not finite, has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.contexts.ball import Ball, BallValue, lower, upper
from refkernels.contexts.value import Mask, Value, not_a_value

Doubles = npt.NDArray[np.float64]
_POSITIVE = ("exp", "erfc", "rsqrt")
_ODD = ("expm1", "log1p", "tanh", "erf", "atan", "sqrt")  # f(x) has the sign of x


class SignedValue(BallValue):
    """A ball, and `sign`, of its shape."""

    __slots__ = ("sign",)

    def __init__(self, context: Signs, mid: Any, radius: Any, sign: Any = np.nan) -> None:
        super().__init__(context, mid, radius)
        seen = np.where(np.abs(self.mid) > self.radius, np.sign(self.mid), sign)
        seen = np.where((self.mid == 0.0) & (self.radius == 0.0), 0.0, seen)
        self.sign: Doubles = np.where(np.isinf(self.radius), np.nan, seen)

    def enclosure(self) -> Enclosure:
        """As an Enclosure, which ends at 0 where the sign is known."""
        known = super().enclosure()
        with np.errstate(all="ignore"):
            size = np.maximum(upper(self.mid, self.radius), -lower(self.mid, self.radius))
            half = np.nextafter(size / 2, np.inf)  # a half of the least number is 0
            sided = (np.abs(self.sign) == 1.0) & (np.abs(known.hi) <= known.radius)
            mid = np.where(sided, self.sign * half, known.hi)
        return trusted(mid, 0.0, np.where(sided, half, known.radius))


class Signs(Ball):
    """Certified float64 with signs."""

    name = "Signs"

    def value(self, mid: Any, radius: Any) -> SignedValue:
        return SignedValue(self, mid, radius)

    def _with(self, ball: BallValue, sign: Any) -> SignedValue:
        return SignedValue(self, ball.mid, ball.radius, sign)

    def add(self, a: Value, b: Value) -> BallValue:
        return self._with(super().add(a, b), _of_sum(np.stack(np.broadcast_arrays(*_signs(a, b)))))

    def multiply(self, a: Value, b: Value) -> BallValue:
        first, second = _signs(a, b)
        return self._with(super().multiply(a, b), first * second)

    def divide(self, a: Value, b: Value) -> BallValue:
        first, second = _signs(a, b)
        return self._with(super().divide(a, b), first * second)

    def square(self, a: Value) -> BallValue:
        return self._with(super().square(a), np.square(*_signs(a)))

    def negative(self, a: Value) -> BallValue:
        return self._with(super().negative(a), -_signs(a)[0])

    def absolute(self, a: Value) -> BallValue:
        return self._with(super().absolute(a), np.abs(*_signs(a)))

    def primitive(self, name: str, a: Value) -> BallValue:
        sign = 1.0 if name in _POSITIVE else _signs(a)[0] if name in _ODD else np.nan
        return self._with(super().primitive(name, a), sign)

    def sum(self, a: Value, axis: int = -1) -> BallValue:
        signs = np.moveaxis(_signs(a)[0], axis, 0)
        return self._with(super().sum(a, axis), np.expand_dims(_of_sum(signs), axis))

    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> BallValue:
        yes, no = (mask.yes, mask.no) if isinstance(mask, Mask) else (mask, ~mask)
        first, second = _signs(a, b)
        either = np.where(first == second, first, np.nan)
        sign = np.where(yes, first, np.where(no, second, either))
        return self._with(super().where(mask, a, b), sign)

    def rearrange(self, change: Any, *values: Value) -> BallValue:
        return self._with(super().rearrange(change, *values), change(*_signs(*values)))


def _signs(*values: Value) -> list[Doubles]:
    for value in values:
        if not isinstance(value, SignedValue):
            raise not_a_value(value)
    return [value.sign for value in values if isinstance(value, SignedValue)]


def _of_sum(signs: Doubles) -> Doubles:
    """The sign of a sum along the first axis: that of its terms, where none has the other."""
    least, most = signs.min(axis=0), signs.max(axis=0)  # NaN if one is
    return np.where(least >= 0.0, most, np.where(most <= 0.0, least, np.nan))
