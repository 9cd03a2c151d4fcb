"""Ball: mid and radius in float64, the first tier of every formula.

The exact value z of every element has |z - mid| <= radius; a radius of infinity says that nothing
is known (beyond float64's range, next to a singularity). With u = 2^-53, e = 2^-1075 half the
smallest subnormal, and A, B the exact values behind (a, p), (b, q):

    a + b     |A + B - fl(a + b)| <= p + q + u |fl(a + b)|              sums are exact in subnormals
    a b       <= |a| q + |b| p + p q + u |fl(a b)| + e
    a / b     A / B - a / b = ((A - a) - (a / b)(B - b)) / B, so
              <= (p + |v| q) / (|b| - q) + u |v| + e, with |v| one rounding larger; infinite where
              |b| <= q
    sum of n  sum p + h u sum |a|, a term in h additions; (n - 1) u for those in sequence
    f(a)      p sup |f'| over the ball, and the error of the kernel, `functions`

Radii are computed in float64 too. A radius that takes k operations on numbers >= 0 is off by a
factor of at most (1 + u)^k and by k e; `outward` multiplies by 1 + 2^-47, which covers 60, and
adds 2^-1068, which covers 100 underflows, wherever the radius is not 0 by structure.

Sources: van der Hoeven (2009), "Ball arithmetic"; Rump (1999), "Fast and parallel interval
arithmetic", doi:10.1023/A:1022374804152; for sums Jeannerod and Rump (2013), doi:10.1137/120894488.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.grids import NumberGrid
from refkernels.arithmetic.transformations import two_prod
from refkernels.contexts import functions
from refkernels.contexts.ball_rules import ETA, LOST, SPAN, U, height
from refkernels.contexts.context import Context, Index, fraction
from refkernels.contexts.functions import outward
from refkernels.contexts.value import Mask, Value, not_a_value

Doubles = npt.NDArray[np.float64]


class BallValue(Value):
    """mid ± radius, float64 arrays of one shape (each may be a broadcast view)."""

    __slots__ = ("mid", "radius")

    def __init__(self, context: Ball, mid: Any, radius: Any = 0.0) -> None:
        self.context = context
        mid, radius = np.asarray(mid, np.float64), np.asarray(radius, np.float64)
        known = np.isfinite(mid) & np.isfinite(radius)
        if not known.all():
            mid, radius = np.where(known, mid, 0.0), np.where(known, radius, np.inf)
        self.mid: Doubles = mid
        self.radius: Doubles = spread(radius, mid.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mid.shape

    def enclosure(self) -> Enclosure:
        """As an Enclosure, whose ends are not attained, unlike a ball's; infinite radii stay."""
        wider = np.where(self.radius > 0.0, np.nextafter(self.radius, np.inf), 0.0)
        return Enclosure(self.mid, 0.0, wider)


class Ball(Context):
    """Certified float64. Inputs that are not finite have an infinite radius: `Unbounded` treats
    special values."""

    name = "Ball"

    def value(self, mid: Any, radius: Any) -> BallValue:
        return BallValue(self, mid, radius)

    def array(self, values: npt.NDArray[Any]) -> BallValue:
        values = np.asarray(values)
        if values.dtype.kind in "iu":
            wide = values.astype(np.float64)
            if np.any(np.abs(wide) > 2.0**53):
                raise ValueError("An integer input is at most 2^53 in magnitude.")
            return self.value(wide, 0.0)
        return self.value(to_float64(values), 0.0)

    def number(self, value: Any) -> BallValue:
        return self.value(*_ball_of_number(value))

    def pi(self) -> BallValue:
        return self.value(np.pi, 2.0**-52)  # pi - fl(pi) = 1.22e-16

    def add(self, a: Value, b: Value) -> BallValue:
        (a_mid, p), (b_mid, q) = parts(a), parts(b)
        with np.errstate(all="ignore"):
            mid = a_mid + b_mid
            return self.value(mid, outward(p + q + self.rounding(mid)))

    def multiply(self, a: Value, b: Value) -> BallValue:
        (a_mid, p), (b_mid, q) = parts(a), parts(b)
        with np.errstate(all="ignore"):
            mid = a_mid * b_mid
            radius = outward(
                np.abs(a_mid) * q + np.abs(b_mid) * p + p * q + self.rounding(mid) + ETA
            )
            if not (a_mid.all() and b_mid.all()):
                exact = ((a_mid == 0.0) & (p == 0.0)) | ((b_mid == 0.0) & (q == 0.0))
                exact &= (p < np.inf) & (q < np.inf)  # 0 times an undefined value is undefined
                radius = np.where(exact, 0.0, radius)
            return self.value(mid, radius)

    def divide(self, a: Value, b: Value) -> BallValue:
        (a_mid, p), (b_mid, q) = parts(a), parts(b)
        with np.errstate(all="ignore"):
            mid = a_mid / b_mid
            least = np.abs(b_mid) - q
            least = np.where(least > 0.0, least * (1.0 - 2.0**-50) - (q > 0.0) * ETA, 0.0)
            size = np.abs(mid) * (1.0 + 2.0**-50) + ETA
            above = p + size * q + np.where(q > 0.0, ETA, 0.0)  # the underflow is divided too
            spread = np.where(least > 0.0, above / least + self.rounding(mid), np.inf)
            zero = (a_mid == 0.0) & (p == 0.0) & (least > 0.0)
            return self.value(mid, np.where(zero, 0.0, outward(spread + ETA)))

    def negative(self, a: Value) -> BallValue:
        mid, radius = parts(a)
        return self.value(-mid, radius)

    def absolute(self, a: Value) -> BallValue:
        mid, radius = parts(a)
        return self.value(np.abs(mid), radius)

    def square(self, a: Value) -> BallValue:
        """a² where |a| - p < |A| < |a| + p; where the ball holds 0, [0, (|a| + p)²]."""
        mid, radius = parts(a)
        plain = self.multiply(a, a)
        if not radius.any():
            return plain
        with np.errstate(all="ignore"):
            top = np.square(np.abs(mid) + radius) * (1.0 + 2.0**-50) + LOST
            straddles = (radius >= np.abs(mid)) & (radius > 0.0)
            half = top / 2
            return self.value(
                np.where(straddles, half, plain.mid), np.where(straddles, half, plain.radius)
            )

    def power(self, a: Value, exponent: int) -> BallValue:
        if exponent < 0:
            return self.divide(self.number(1), self.power(a, -exponent))
        if exponent == 0:
            return self.value(np.ones(a.shape), 0.0)
        half = self.square(self.power(a, exponent // 2)) if exponent > 1 else None
        if half is None:
            return self.value(*parts(a))
        return self.multiply(half, a) if exponent % 2 else half

    def primitive(self, name: str, a: Value) -> BallValue:
        return self.value(*functions.ball(name, *parts(a)))

    def logaddexp(self, a: Value, b: Value, log1p: bool = True) -> BallValue:
        """It moves no farther than the operand that moves farther: its slopes add up to 1."""
        (a_mid, p), (b_mid, q) = parts(a), parts(b)
        mid, radius = parts(super().logaddexp(self.value(a_mid, 0.0), self.value(b_mid, 0.0)))
        return self.value(mid, outward(radius + np.maximum(p, q)))

    def sum(self, a: Value, axis: int = -1) -> BallValue:
        """In the order of `ball_rules.fold`: |error| <= ((1 + u)^h - 1) sum |a|, and h < 64. The
        sums of |a| and of radii are computed too, and too small by at most n u of themselves."""
        mid, radius = parts(a)
        n = mid.shape[axis]
        with np.errstate(all="ignore"):
            total = folded(mid, axis)
            sizes = np.abs(mid).sum(axis=axis, keepdims=True)
            radii = radius.sum(axis=axis, keepdims=True)
            slack = 1.0 + 2.0 * n * U + 2.0**-40
            return self.value(total, outward((radii + (height(n) * U) * sizes) * slack))

    def max(self, a: Value, axis: int = -1) -> BallValue:
        mid, radius = parts(a)
        if mid.shape[axis] == 1:
            return self.value(mid, radius)
        with np.errstate(all="ignore"):
            low = lower(mid, radius).max(axis=axis, keepdims=True)
            high = upper(mid, radius).max(axis=axis, keepdims=True)
        return self.between(low, high)

    def cumsum(self, a: Value, axis: int = -1) -> BallValue:
        mid, radius = parts(a)
        length = mid.shape[axis]
        shape = [1] * mid.ndim
        shape[axis] = length
        with np.errstate(all="ignore"):
            total = np.cumsum(mid, axis=axis)
            sizes, radii = np.cumsum(np.abs(mid), axis=axis), np.cumsum(radius, axis=axis)
            counts = np.arange(length, dtype=np.float64).reshape(shape)
            spread = (radii + counts * (self.unit * sizes)) * (1.0 + 2.0 * length * U + 2.0**-50)
            return self.value(total, outward(spread))

    def matmul(self, a: Value, b: Value) -> BallValue:
        """|error| <= K u |A||B| + K e for the products of the mids (`blas.product`); |A| rB + rA
        (|B| + rB) for the radii: K u (|A| + rA / K u) |B| + (|A| + rA) rB in all."""
        (a_mid, p), (b_mid, q) = parts(a), parts(b)
        terms = a_mid.shape[-1]
        with np.errstate(all="ignore"):
            mid = blas.product(a_mid, b_mid)
            a_size, b_size, unit = np.abs(a_mid), np.abs(b_mid), self.unit * terms
            wider = a_size + p / unit if p.any() else a_size  # it cannot underflow, as p |B| / K u
            spread = unit * blas.product(wider, b_size)
            if q.any():
                spread = spread + blas.product(a_size + p, q)
            lost = terms * 4.0 * ETA  # of each product, here and in the sums above
            radius = outward(spread * (1.0 + 4.0 * terms * U) + lost)
            if not mid.all():  # products of which one factor is 0 by structure are 0
                zero = blas.product(*((x > 0.0).astype(float) for x in (a_size + p, b_size + q)))
                radius = np.where((zero == 0.0) & (spread < np.inf), 0.0, radius)
            return self.value(mid, radius)

    def pivot(self, a: Value, axis: int = -1) -> BallValue:
        return self.value(parts(a)[0].max(axis=axis, keepdims=True), 0.0)

    def less(self, a: Value, b: Value) -> Mask:
        (a_mid, p), (b_mid, q) = parts(a), parts(b)
        with np.errstate(all="ignore"):
            yes = upper(a_mid, p) < lower(b_mid, q)
            no = lower(a_mid, p) >= upper(b_mid, q)
        return Mask(np.asarray(yes), np.asarray(no))

    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> BallValue:
        (a_mid, p), (b_mid, q) = parts(a), parts(b)
        if not isinstance(mask, Mask):
            return self.value(np.where(mask, a_mid, b_mid), np.where(mask, p, q))
        mid, radius = np.where(mask.yes, a_mid, b_mid), np.where(mask.yes, p, q)
        if mask.decided.all():
            return self.value(mid, radius)
        with np.errstate(all="ignore"):
            union = self.between(
                np.minimum(lower(a_mid, p), lower(b_mid, q)),
                np.maximum(upper(a_mid, p), upper(b_mid, q)),
            )
        known = mask.decided
        return self.value(np.where(known, mid, union.mid), np.where(known, radius, union.radius))

    def maximum(self, a: Value, b: Value) -> BallValue:
        (a_mid, p), (b_mid, q) = parts(a), parts(b)
        with np.errstate(all="ignore"):
            low = np.maximum(lower(a_mid, p), lower(b_mid, q))
            high = np.maximum(upper(a_mid, p), upper(b_mid, q))
        return self.between(low, high)

    def quotient(self, a: Value, b: Value) -> BallValue:
        """Scaled, so that the product of quotient and divisor, and its error, are float64s."""
        (a_mid, p), (b_mid, q) = parts(a), parts(b)
        ball = self.divide(a, b)
        whole = np.frexp(ball.mid)[0]
        with np.errstate(all="ignore"):
            product, error = two_prod(whole, np.frexp(b_mid)[0])
            dividend = np.frexp(a_mid)[0]
            exact = (error == 0.0) & ((product == dividend) | (2.0 * product == dividend))
            exact &= (p == 0.0) & (q == 0.0) & (np.abs(ball.mid) > 2.0**-1000)
        return self.value(ball.mid, np.where(exact, 0.0, ball.radius))

    def step(self, a: Value, grid: NumberGrid) -> BallValue:
        mid, radius = parts(a)
        ball = self.between(grid(lower(mid, radius)), grid(upper(mid, radius)))
        return self.value(ball.mid, np.where(radius < np.inf, ball.radius, np.inf))

    def between(self, low: Doubles, high: Doubles) -> BallValue:
        """The ball that holds [low, high]; exact where they are one number."""
        with np.errstate(all="ignore"):
            mid = np.where(low == high, low, low / 2 + high / 2)
            spread = np.maximum(high - mid, mid - low)
            return self.value(mid, np.where(low == high, 0.0, outward(spread + ETA)))

    def rearrange(self, change: Any, *values: Value) -> BallValue:
        pairs = [parts(value) for value in values]
        return self.value(change(*(mid for mid, _ in pairs)), change(*(r for _, r in pairs)))

    def scatter_add(self, a: Value, index: Index, length: int) -> BallValue:
        mid, radius = parts(a)
        total, sizes, radii = (np.zeros((length, *mid.shape[1:])) for _ in range(3))
        with np.errstate(all="ignore"):
            for into, rows in ((total, mid), (sizes, np.abs(mid)), (radii, radius)):
                np.add.at(into, index, rows)
            most_rows = int(np.bincount(index.reshape(-1), minlength=1).max(initial=1))
            # The first addition, to 0, is exact.
            spread = radii + self.unit * (most_rows - 1) * sizes
            spread = spread * (1.0 + 2.0 * most_rows * U + 2.0**-50)
            return self.value(total, outward(spread))

    unit = U

    def rounding(self, mid: Doubles) -> Doubles:
        """The largest error of one rounding to nearest of a result in the normal range."""
        size: Doubles = np.abs(mid) * self.unit
        return size


@functools.lru_cache(maxsize=1024, typed=True)  # True is no number, though it equals 1
def _ball_of_number(value: Any) -> tuple[float, float]:
    """Mid and radius of a param."""
    exact = fraction(value)
    try:
        mid = float(exact)
    except OverflowError:
        return 0.0, math.inf
    return mid, 0.0 if Fraction(mid) == exact else U * abs(mid) + ETA


def spread(array: Doubles, shape: tuple[int, ...]) -> Doubles:
    """np.broadcast_to, which costs as much as an operation on a thousand elements."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def parts(value: Value) -> tuple[Doubles, Doubles]:
    """mid and radius of a Value."""
    if not isinstance(value, BallValue):
        raise not_a_value(value)
    return value.mid, value.radius


def upper(mid: Doubles, radius: Doubles) -> Doubles:
    """At least mid + radius, as `ball_rules.ends` has it."""
    with np.errstate(all="ignore"):
        end = mid + radius
        return np.where(radius > 0.0, end + (np.abs(end) * (2.0 * U) + ETA), end)


def lower(mid: Doubles, radius: Doubles) -> Doubles:
    with np.errstate(all="ignore"):
        end = mid - radius
        return np.where(radius > 0.0, end - (np.abs(end) * (2.0 * U) + ETA), end)


def folded(a: Doubles, axis: int) -> Doubles:
    """The sums along an axis, which is kept, in the order of `ball_rules.fold`."""
    terms = np.moveaxis(a, axis, -1)
    if terms.shape[-1] > SPAN:
        multiple = terms.shape[-1] // SPAN * SPAN
        spans = terms[..., :multiple].reshape(*terms.shape[:-1], -1, SPAN)
        parts_ = [_halved(spans)[..., 0]]
        if multiple < terms.shape[-1]:
            parts_.append(_halved(terms[..., multiple:]))
        terms = np.concatenate(parts_, axis=-1)
    return np.moveaxis(_halved(terms), -1, axis)


def _halved(terms: Doubles) -> Doubles:
    if not terms.shape[-1]:
        return np.zeros((*terms.shape[:-1], 1))
    while (n := terms.shape[-1]) > 1:
        half = (n + 1) // 2
        low = terms[..., :half].copy()
        low[..., : n - half] += terms[..., half:]
        terms = low
    return terms
