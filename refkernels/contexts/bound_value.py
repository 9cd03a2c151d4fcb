"""A value of `Bound`: the exact value's ball, and a kernel's largest distance from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.ball import BallValue, spread
from refkernels.contexts.value import Value, not_a_value

if TYPE_CHECKING:
    from refkernels.contexts.context import Context

Doubles = npt.NDArray[np.float64]


class BoundValue(Value):
    """|z - mid| <= radius of `exact`, |ẑ - z| <= `error`. A `loose` value is a scalar in binary64
    that has met no array of the working format."""

    __slots__ = ("error", "exact", "loose")

    def __init__(self, context: Context, exact: BallValue, error: Any, loose: bool = False) -> None:
        self.context = context
        self.exact = exact
        error = spread(np.asarray(error, np.float64), exact.shape)
        unknown = ~(error < np.inf) | np.isinf(exact.radius)
        self.error: Doubles = np.where(unknown, np.inf, error) if unknown.any() else error
        self.loose = loose

    @property
    def shape(self) -> tuple[int, ...]:
        return self.exact.shape

    @property
    def size(self) -> Doubles:
        """M >= |z|."""
        with np.errstate(over="ignore"):
            return np.asarray(np.abs(self.exact.mid) + self.exact.radius)

    @property
    def reach(self) -> Doubles:
        """M + r >= |ẑ|."""
        return self.size + self.error

    @property
    def powers_of_two(self) -> npt.NDArray[np.bool_]:
        """Which elements are a power of two in every kernel."""
        mantissa, _ = np.frexp(self.exact.mid)
        half = np.abs(mantissa) == 0.5
        return np.asarray(half & (self.exact.radius == 0.0) & (self.error == 0.0))


def parts(value: Value) -> BoundValue:
    if not isinstance(value, BoundValue):
        raise not_a_value(value)
    return value
