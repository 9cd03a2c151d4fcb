"""The operations that a kernel computes without rounding: signs, choices, shapes. See `bound`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.grids import NumberGrid
from refkernels.contexts.ball import Ball, BallValue, lower, outward, upper
from refkernels.contexts.bound_value import BoundValue, parts
from refkernels.contexts.context import Context
from refkernels.contexts.value import Mask, Value

Doubles = npt.NDArray[np.float64]


class Unrounded(Context):
    """The primitives of `Bound` that round nothing."""

    ball: Ball

    def enter(self, a: Value) -> BoundValue:
        """a as an operand among a kernel's arrays."""
        raise NotImplementedError

    def negative(self, a: Value) -> BoundValue:
        x = parts(a)
        return BoundValue(self, self.ball.negative(x.exact), x.error, x.loose)

    def absolute(self, a: Value) -> BoundValue:
        x = parts(a)
        return BoundValue(self, self.ball.absolute(x.exact), x.error, x.loose)

    def _ends(self, x: BoundValue) -> tuple[Doubles, Doubles]:
        """Lower and upper bounds on z and every ẑ."""
        hull = self._hull(x)
        with np.errstate(all="ignore"):
            return lower(hull.mid, hull.radius), upper(hull.mid, hull.radius)

    def _hull(self, x: BoundValue) -> BallValue:
        return self.ball.value(x.exact.mid, outward(x.exact.radius + x.error))

    def less(self, a: Value, b: Value) -> Mask:
        """Decided where z and every ẑ agree."""
        return self.ball.less(self._hull(self.enter(a)), self._hull(self.enter(b)))

    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> BoundValue:
        """Undecided, z may take one branch and ẑ the other: |â - b| <= |a - b| + r_a."""
        x, y = self.enter(a), self.enter(b)
        exact = self.ball.where(mask, x.exact, y.exact)
        yes = mask.yes if isinstance(mask, Mask) else mask
        error = np.where(yes, x.error, y.error)
        if isinstance(mask, Mask) and not mask.decided.all():
            with np.errstate(all="ignore"):
                gap = np.abs(x.exact.mid - y.exact.mid) + x.exact.radius + y.exact.radius
                jump = outward(gap + np.maximum(x.error, y.error))
            error = np.where(mask.decided, error, jump)
        return BoundValue(self, exact, error)

    def maximum(self, a: Value, b: Value) -> BoundValue:
        x, y = self.enter(a), self.enter(b)
        less = self.less(x, y)
        error = np.where(less.yes, y.error, np.where(less.no, x.error, np.inf))
        error = np.where(less.decided, error, np.maximum(x.error, y.error))
        return BoundValue(self, self.ball.maximum(x.exact, y.exact), error)

    def step(self, a: Value, grid: NumberGrid) -> BoundValue:
        """z and ẑ lie between the same ends."""
        x = self.enter(a)
        low, high = self._ends(x)
        jump = outward(grid(high) - grid(low))
        error = np.where(x.error < np.inf, np.where(x.error > 0.0, jump, 0.0), np.inf)
        return BoundValue(self, self.ball.step(x.exact, grid), error)

    def rearrange(self, change: Callable[..., Any], *values: Value) -> BoundValue:
        loose = all(parts(value).loose for value in values)
        items = [parts(value) if loose else self.enter(value) for value in values]
        exact = self.ball.rearrange(change, *(item.exact for item in items))
        return BoundValue(self, exact, change(*(item.error for item in items)), loose)

    def max(self, a: Value, axis: int = -1) -> BoundValue:
        """z's largest and ẑ's are among those whose upper end reaches the highest lower end."""
        x = self.enter(a)
        low, high = self._ends(x)
        with np.errstate(all="ignore"):
            among = ~(high < low.max(axis, keepdims=True))
            error = np.where(among, x.error, 0.0).max(axis, keepdims=True)
        return BoundValue(self, self.ball.max(x.exact, axis), error)

    def pivot(self, a: Value, axis: int = -1) -> BoundValue:
        low, high = self._ends(self.enter(a))
        exact = self.ball.between(low.max(axis, keepdims=True), high.max(axis, keepdims=True))
        return BoundValue(self, exact, 0.0)

    def either(self, a: Value, b: Value) -> BoundValue:
        x, y = self.enter(a), self.enter(b)
        (x_low, x_high), (y_low, y_high) = (
            (lower(v.exact.mid, v.exact.radius), upper(v.exact.mid, v.exact.radius)) for v in (x, y)
        )
        exact = self.ball.between(np.minimum(x_low, y_low), np.maximum(x_high, y_high))
        return BoundValue(self, exact, np.maximum(x.error, y.error))
