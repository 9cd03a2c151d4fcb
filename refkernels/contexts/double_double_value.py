"""A value of `DoubleDouble`: a float64 head, and a ball for the tail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.contexts.ball import BallValue
from refkernels.contexts.value import Value, not_a_value

if TYPE_CHECKING:
    from refkernels.contexts.double_double import DoubleDouble

Doubles = npt.NDArray[np.float64]


class DoubleDoubleValue(Value):
    """head + tail, of one shape."""

    __slots__ = ("head", "tail")

    def __init__(self, context: DoubleDouble, head: Doubles, tail: BallValue) -> None:
        self.context = context
        unknown = ~np.isfinite(head) | np.isinf(tail.radius)
        if unknown.any():
            head = np.where(unknown, 0.0, head)
            tail = context.ball.value(tail.mid, np.where(unknown, np.inf, tail.radius))
        self.head = head
        self.tail = tail

    @property
    def shape(self) -> tuple[int, ...]:
        return self.head.shape

    def enclosure(self) -> Enclosure:
        """As an Enclosure, whose ends are not attained, unlike a ball's; infinite radii stay."""
        tail = self.tail.enclosure()
        return trusted(self.head, tail.hi, tail.radius)


def parts(value: Value) -> DoubleDoubleValue:
    if not isinstance(value, DoubleDoubleValue):
        raise not_a_value(value)
    return value
