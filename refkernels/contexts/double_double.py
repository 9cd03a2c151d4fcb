"""DoubleDouble: hi + lo ± radius, the tier between Ball and Arb.

The head is a float64 and the tail a Ball: z lies in head + tail. What float64 loses of the heads is
recovered exactly by an error-free transformation and goes to the tail, so that the proofs are
Ball's. With A = a + α and B = b + β, tails α, β:

    A + B    s + e = a + b              tail e + α + β
    A B      p + e = a b                tail e + a β + b α + α β
    A / B    q = fl(a / b)              tail (a - q b + α - q β) / B, for A / B - q = (A - q B) / B
    √A       s = fl(√a)                 tail (a - s² + α) / (√A + s)
    f(A)     f(a) in double-double      tail + α f'(ξ), ξ between a and A: the mean value theorem,
                                        f' from the table of derivatives, read in Ball

Long sums of exact numbers are exact, `exact_sums`.

Where a product, quotient or root leaves the range in which its remainder is a float64, Ball's rule
takes over. The head is the float64 nearest to head + tail's middle.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import PARTS
from refkernels.arithmetic.exact import from_integer_balls
from refkernels.arithmetic.exact_sums import exact_sum
from refkernels.arithmetic.grids import NumberGrid
from refkernels.arithmetic.transformations import divided, rooted, two_prod, two_sum
from refkernels.contexts import functions, products
from refkernels.contexts.ball import Ball, BallValue, outward
from refkernels.contexts.context import Context, Index, fraction
from refkernels.contexts.double_double_value import DoubleDoubleValue, parts
from refkernels.contexts.gradient import SLOPES
from refkernels.contexts.value import Mask, Value

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
LONG = 4096
"""Terms of exact numbers that are added as integers."""
_SMALL, _LARGE = 2.0**-900, 2.0**1000


class DoubleDouble(Context):
    """Certified double-double on NumPy arrays."""

    name = "DoubleDouble"

    def __init__(self) -> None:
        self.ball = Ball()

    def array(self, values: npt.NDArray[Any]) -> DoubleDoubleValue:
        return self._from_ball(self.ball.array(values))

    def number(self, value: Any) -> DoubleDoubleValue:
        exact = fraction(value)
        head = self.ball.number(exact)
        if np.isinf(head.radius):
            return self._from_ball(head)
        tail = self.ball.number(exact - Fraction(float(head.mid)))
        return DoubleDoubleValue(self, head.mid, tail)

    def pi(self) -> DoubleDoubleValue:
        tail = self.ball.value(1.2246467991473532e-16, 2.0**-105)  # half an ulp of it is 2^-106
        return DoubleDoubleValue(self, np.asarray(np.pi), tail)

    # --- head and tail -----------------------------------------------------------------------

    def _from_ball(self, ball: BallValue) -> DoubleDoubleValue:
        return DoubleDoubleValue(self, ball.mid, self.ball.value(np.zeros(ball.shape), ball.radius))

    def _exact(self, x: Doubles) -> BallValue:
        return self.ball.value(x, 0.0)

    def _whole(self, x: DoubleDoubleValue) -> BallValue:
        """A ball around the head that holds the value."""
        with np.errstate(all="ignore"):
            return self.ball.value(x.head, outward(np.abs(x.tail.mid) + x.tail.radius))

    def _of(self, head: Doubles, tail: BallValue) -> DoubleDoubleValue:
        with np.errstate(all="ignore"):
            total, error = two_sum(head, tail.mid)
            return DoubleDoubleValue(self, total, self.ball.value(error, tail.radius))

    def _or_ball(self, ok: Any, value: DoubleDoubleValue, ball: BallValue) -> DoubleDoubleValue:
        if np.all(ok):
            return value
        converted = self._from_ball(ball)
        tail = self.ball.where(np.broadcast_to(ok, value.shape), value.tail, converted.tail)
        return DoubleDoubleValue(self, np.where(ok, value.head, converted.head), tail)

    # --- arithmetic --------------------------------------------------------------------------

    def add(self, a: Value, b: Value) -> DoubleDoubleValue:
        x, y = parts(a), parts(b)
        with np.errstate(all="ignore"):
            total, error = two_sum(x.head, y.head)
        tail = self.ball.add(self.ball.add(x.tail, y.tail), self._exact(error))
        return self._of(total, tail)

    def multiply(self, a: Value, b: Value) -> DoubleDoubleValue:
        x, y, ball = parts(a), parts(b), self.ball
        with np.errstate(all="ignore"):
            (a_part, a_scale), (b_part, b_scale) = np.frexp(x.head), np.frexp(y.head)
            product, error = two_prod(a_part, b_part)
            scale = a_scale + b_scale
            product, error = np.ldexp(product, scale), np.ldexp(error, scale)
            ok = _ordinary(product) | (x.head == 0.0) | (y.head == 0.0)
        cross = ball.add(
            ball.multiply(self._exact(x.head), y.tail), ball.multiply(self._exact(y.head), x.tail)
        )
        tail = ball.add(ball.add(cross, ball.multiply(x.tail, y.tail)), self._exact(error))
        value = self._of(product, tail)
        return value if np.all(ok) else self._or_ball(ok, value, ball.multiply(*self._wholes(x, y)))

    def _wholes(self, *values: DoubleDoubleValue) -> list[BallValue]:
        return [self._whole(value) for value in values]

    def divide(self, a: Value, b: Value) -> DoubleDoubleValue:
        x, y, ball = parts(a), parts(b), self.ball
        with np.errstate(all="ignore"):
            (a_part, a_scale), (b_part, b_scale) = np.frexp(x.head), np.frexp(y.head)
            q, remainder = divided(a_part, b_part)
            q, remainder = np.ldexp(q, a_scale - b_scale), np.ldexp(remainder, a_scale)
            zero = (x.head == 0.0) & (y.head != 0.0)
            ok = (_ordinary(q) & _ordinary(x.head) & _ordinary(y.head)) | zero
        above = ball.subtract(x.tail, ball.multiply(self._exact(q), y.tail))
        tail = ball.divide(ball.add(above, self._exact(remainder)), self._whole(y))
        value = self._of(q, tail)
        return value if np.all(ok) else self._or_ball(ok, value, ball.divide(*self._wholes(x, y)))

    def negative(self, a: Value) -> DoubleDoubleValue:
        x = parts(a)
        return DoubleDoubleValue(self, -x.head, self.ball.negative(x.tail))

    def absolute(self, a: Value) -> DoubleDoubleValue:
        """||z| - |m|| <= |z - m|, and m = head + tail.mid has the head's sign."""
        x = parts(a)
        sign = np.where(x.head < 0.0, -1.0, 1.0)
        tail = self.ball.value(x.tail.mid * sign, x.tail.radius)
        return DoubleDoubleValue(self, np.abs(x.head), tail)

    def square(self, a: Value) -> DoubleDoubleValue:
        """Where the sign of a is unknown, Ball's square still knows that of a²."""
        whole = self._whole(parts(a))
        signed = (np.abs(whole.mid) > whole.radius) | (whole.radius == 0.0)
        value = self.multiply(a, a)
        return value if signed.all() else self._or_ball(signed, value, self.ball.square(whole))

    def power(self, a: Value, exponent: int) -> DoubleDoubleValue:
        if exponent < 0:
            return self.divide(self.number(1), self.power(a, -exponent))
        if exponent == 0:
            return self.array(np.ones(a.shape))
        if exponent == 1:
            return parts(a)
        half = self.square(self.power(a, exponent // 2))
        return self.multiply(half, a) if exponent % 2 else half

    # --- functions ---------------------------------------------------------------------------

    def primitive(self, name: str, a: Value) -> DoubleDoubleValue:
        """Where a tail is wide, Ball's rule may be sharper."""
        x, ball = parts(a), self.ball
        whole = self._whole(x)
        rough = ball.function(name, whole)
        if name == "sqrt":
            value, ok = self._root(x, rough)
        else:
            head, tail, ok = functions.double_double(name, x.head)
            slope = SLOPES[name](ball, rough, whole)
            value = self._of(head, ball.add(self.ball.value(*tail), ball.multiply(x.tail, slope)))
        with np.errstate(all="ignore"):
            ok = ok & ~(rough.radius <= value.tail.radius)
        return self._or_ball(ok, value, rough)

    def logaddexp(self, a: Value, b: Value, log1p: bool = True) -> DoubleDoubleValue:
        """It moves no farther than the operand that moves farther."""
        x, y = parts(a), parts(b)
        first, second = (DoubleDoubleValue(self, v.head, self._exact(v.tail.mid)) for v in (x, y))
        middle = parts(super().logaddexp(first, second))
        radius = outward(middle.tail.radius + np.maximum(x.tail.radius, y.tail.radius))
        return DoubleDoubleValue(self, middle.head, self.ball.value(middle.tail.mid, radius))

    def _root(self, x: DoubleDoubleValue, rough: BallValue) -> tuple[DoubleDoubleValue, Bools]:
        with np.errstate(all="ignore"):
            part, scale = np.frexp(x.head)
            odd = scale & 1
            s, remainder = rooted(np.where(odd, part * 2.0, part))
            half = (scale - odd) // 2
            s, remainder = np.ldexp(s, half), np.ldexp(remainder, 2 * half)
        above = self.ball.add(x.tail, self._exact(remainder))
        tail = self.ball.divide(above, self.ball.add(rough, self._exact(s)))
        return self._of(s, tail), _ordinary(x.head)

    def step(self, a: Value, grid: NumberGrid) -> DoubleDoubleValue:
        return self._from_ball(self.ball.step(self._whole(parts(a)), grid))

    # --- reductions --------------------------------------------------------------------------

    def _fold(self, a: Value, axis: int, rule: Callable[[Value, Value], Value]) -> Value:
        """A tree of pairs over the axis."""
        while (n := a.shape[axis]) > 1:
            first, second = (
                self.take(a, np.arange(start, stop), axis)
                for start, stop in ((0, n // 2), (n // 2, n - n % 2))
            )
            pairs = rule(first, second)
            last = self.take(a, np.arange(n - n % 2, n), axis)
            a = self.concatenate([pairs, last], axis) if n % 2 else pairs
        return a

    def sum(self, a: Value, axis: int = -1) -> Value:
        if not parts(a).shape[axis]:
            return self.array(np.sum(parts(a).head, axis=axis, keepdims=True))
        x = parts(a)
        if a.shape[axis] >= LONG and not x.tail.mid.any() and not x.tail.radius.any():
            terms = np.moveaxis(x.head, axis, -1)
            sums = [exact_sum(row) for row in terms.reshape(-1, terms.shape[-1])]
            mids, exponents = zip(*sums, strict=True)
            exact = from_integer_balls(mids, [0] * len(sums), exponents, terms.shape[:-1])
            if not exact.scale.any():
                hi, lo, radius = (np.expand_dims(getattr(exact, n), axis) for n in PARTS[:3])
                return DoubleDoubleValue(self, hi, self.ball.value(lo, radius))
        return self._fold(a, axis, self.add)

    def max(self, a: Value, axis: int = -1) -> Value:
        return self._fold(a, axis, self.maximum)

    def pivot(self, a: Value, axis: int = -1) -> DoubleDoubleValue:
        return self.array(parts(a).head.max(axis=axis, keepdims=True))

    def cumsum(self, a: Value, axis: int = -1) -> Value:
        """By Hillis and Steele: each element adds the element 1, 2, 4, ... places before it."""
        n, step = parts(a).shape[axis], 1
        while step < n:
            before = self.take(a, np.arange(step), axis)
            sums = self.add(
                self.take(a, np.arange(step, n), axis), self.take(a, np.arange(n - step), axis)
            )
            a, step = self.concatenate([before, sums], axis), 2 * step
        return a

    def matmul(self, a: Value, b: Value) -> Value:
        """(a + α)(b + β) = a b + a β + α (b + β): the heads' product by Dot2, the others by Ball's
        rule. A head that is too small for Dot2 joins its tail."""
        x, y, ball = parts(a), parts(b), self.ball
        left, right = products.Operand.of(x.head), products.Operand.of(y.head)
        high, low, radius = products.product(left, right)
        x_tail, y_tail = (
            ball.add(operand.tail, self._exact(part.rest)) if part.rest.any() else operand.tail
            for operand, part in ((x, left), (y, right))
        )
        tail = ball.value(low, radius)
        if _any(y_tail):
            tail = ball.add(tail, ball.matmul(self._exact(x.head - left.rest), y_tail))
        if _any(x_tail):
            tail = ball.add(tail, ball.matmul(x_tail, self._whole(y)))
        return self._of(high, tail)

    def scatter_add(self, a: Value, index: Index, length: int) -> DoubleDoubleValue:
        """A tree of pairs of rows with the same index, in their order."""
        order = np.argsort(index, kind="stable")
        places, rows = index[order], self.take(a, order)
        while places.size and (joined := places[1:] == places[:-1]).any():
            starts = np.r_[0, np.flatnonzero(~joined) + 1]
            rank = np.arange(places.size) - np.repeat(starts, np.diff(np.r_[starts, places.size]))
            first = np.flatnonzero(np.r_[joined, False] & (rank % 2 == 0))
            pairs = self.add(self.take(rows, first), self.take(rows, first + 1))
            copies = [column.copy() for column in columns(rows)]
            for column, sums in zip(copies, columns(pairs), strict=True):
                column[first] = sums
            kept = np.delete(np.arange(places.size), first + 1)
            head, *tail = (column[kept] for column in copies)
            places, rows = places[kept], DoubleDoubleValue(self, head, self.ball.value(*tail))
        totals = [np.zeros((length, *parts(rows).shape[1:])) for _ in range(3)]
        for total, column in zip(totals, columns(rows), strict=True):
            total[places] = column + 0.0  # a sum that starts at 0 is never -0
        return DoubleDoubleValue(self, totals[0], self.ball.value(*totals[1:]))

    # --- choice ------------------------------------------------------------------------------

    def less(self, a: Value, b: Value) -> Mask:
        """By the sign of a - b, head and tail apart: head + tail has the sign of head + tail.mid,
        normalized, where that is beyond the radius."""
        difference = parts(self.subtract(a, b))
        head, mid, radius = difference.head, difference.tail.mid, difference.tail.radius
        with np.errstate(all="ignore"):
            known = np.isfinite(radius)
            size = np.abs(head) * (1.0 - 2.0**-50) - np.abs(mid) * 2.0**-50
            sure = known & ((size > radius * (1.0 + 2.0**-50)) | (radius == 0.0))
        return Mask(np.asarray(sure & (head < 0.0)), np.asarray(sure & (head >= 0.0)))

    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> DoubleDoubleValue:
        """Where undecided, a + the hull of 0 and b - a."""
        x, y = parts(a), parts(b)
        yes = mask.yes if isinstance(mask, Mask) else mask
        chosen = DoubleDoubleValue(
            self, np.where(yes, x.head, y.head), self.ball.where(yes, x.tail, y.tail)
        )
        if not isinstance(mask, Mask) or mask.decided.all():
            return chosen
        gap = self._whole(parts(self.subtract(b, a)))
        with np.errstate(all="ignore"):
            low = np.minimum(np.nextafter(gap.mid - gap.radius, -np.inf), 0.0)
            high = np.maximum(np.nextafter(gap.mid + gap.radius, np.inf), 0.0)
        union = self.add(a, self._from_ball(self.ball.between(low, high)))
        tail = self.ball.where(mask.decided, chosen.tail, union.tail)
        return DoubleDoubleValue(self, np.where(mask.decided, chosen.head, union.head), tail)

    def maximum(self, a: Value, b: Value) -> DoubleDoubleValue:
        return self.where(self.less(a, b), b, a)

    # --- shape -------------------------------------------------------------------------------

    def rearrange(self, change: Callable[..., Any], *values: Value) -> DoubleDoubleValue:
        items = [parts(value) for value in values]
        tail = self.ball.rearrange(change, *(item.tail for item in items))
        return DoubleDoubleValue(self, change(*(item.head for item in items)), tail)


def columns(a: Value) -> tuple[Doubles, Doubles, Doubles]:
    """Head, and mid and radius of the tail."""
    x = parts(a)
    return x.head, x.tail.mid, x.tail.radius


def _any(ball: BallValue) -> bool:
    """Whether the ball is anything but exact zeros."""
    return bool(ball.mid.any() or ball.radius.any())


def _ordinary(x: Doubles) -> Bools:
    """Where every remainder is a float64."""
    size = np.abs(x)
    return np.asarray((size > _SMALL) & (size < _LARGE))
