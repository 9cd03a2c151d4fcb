"""Running: a form's value and rounding bound in one pass of float64.

A form is a formula in `xp`, as the contexts read it. Here a value is a pair (m, r): every ẑ that a
kernel of the form may compute in the format is within r of the exact z. The float64 evaluation m
is such a kernel too: it rounds no more coarsely, and its functions are within 4 ulp of float64. So
|m - z| <= r: no enclosure is needed, |z| <= |m| + r and |ẑ| <= |m| + 2 r. With A = |a| + r_a, and
with one rounding to follow, |fl(x) - x| <= u |x| + η / 2 (`arithmetic.rounding`):

    a + b    r_a + r_b                                  a sum in the format loses no η
    a b      A r_b + (|b| + 2 r_b) r_a                  âb̂ - ab = a(b̂-b) + b̂(â-a)
    a / b    (r_a + A r_b / L) / L, L = |b| - 2 r_b     â/b̂ - a/b = ((â-a) - (a/b)(b̂-b)) / b̂
    f(a)     sup |f(ẑ) - f(z)|, both within 2 r of a, then limit ulp(f): `Primitive`

A product with a power of two loses η / 2 at most. Overflow: where `over` is set, ẑ may also be
infinite, with the sign of m. A quotient by it may then be 0, off by its whole value; exp of it is 0
or infinite; tanh, erf and erfc saturate, from 64 on. Nothing is known of other results made from it
(`through`). A result that overflows in its own last rounding keeps its bound: infinity counts as
the next number.

Source: Higham (2002), "Accuracy and Stability of Numerical Algorithms", section 3.3 (running error
analysis). `contexts.Bound` does the same with enclosures; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format, working_format
from refkernels.arithmetic.rounding import ETA, Rounding
from refkernels.kernels.real_function import Array, Doubles

_UP = 1.0 + 2.0**-30  # covers the roundings of the radii themselves: 2^-52 for each operation
_MORE = 1.0 + 2.0**-50
_FLOAT64_ERROR = 8 * 2.0**-53  # 4 ulp of float64, relative
_LARGE = 2.0**20  # exp and tanh of larger arguments are 0, infinite or 1
_TAIL = 2.0**-150  # above 1 - |tanh| at _SATURATED, and below a library's error
_SATURATED = 64.0  # beyond it every library's tanh and erf are ±1


@dataclass(frozen=True)
class Primitive:
    """A library function: `values`, certified; `value`, if that is faster, in
    float64 to a relative 2^-40, for narrower forms. Where its argument may be rounded,
    `spread(a, r, f)` >= |f(x) - f(y)| for all x and y within 2 r of a and r of one another,
    f = |f(a)|. `limit`: its own, in ulp."""

    values: Callable[[Doubles], Enclosure]
    value: Callable[[Doubles], Any] | None = None
    spread: Callable[[Doubles, Doubles, Doubles], Doubles] | None = None
    saturates: bool = False
    limit: float | None = None


@dataclass(frozen=True, eq=False)
class RunningValue:
    """A value. `over`: where a kernel's value may be infinite; `through`: where an operand's
    overflow is the reason."""

    xp: Running
    m: Any
    r: Any
    over: Any = False
    through: Any = False

    def __add__(self, other: Any) -> RunningValue:
        return self.xp.add(self, self.xp.lift(other))

    def __sub__(self, other: Any) -> RunningValue:
        return self.xp.add(self, -self.xp.lift(other))

    def __rsub__(self, other: Any) -> RunningValue:
        return self.xp.add(self.xp.lift(other), -self)

    def __mul__(self, other: Any) -> RunningValue:
        return self.xp.multiply(self, self.xp.lift(other))

    def __truediv__(self, other: Any) -> RunningValue:
        return self.xp.divide(self, self.xp.lift(other))

    def __rtruediv__(self, other: Any) -> RunningValue:
        return self.xp.divide(self.xp.lift(other), self)

    def __neg__(self) -> RunningValue:
        return RunningValue(self.xp, -self.m, self.r, self.over, self.through)

    def __abs__(self) -> RunningValue:
        return RunningValue(self.xp, np.abs(self.m), self.r, self.over, self.through)

    def __lt__(self, other: Any) -> Any:
        """A comparison of inputs, which are exact."""
        return self.m < self.xp.lift(other).m

    def __gt__(self, other: Any) -> Any:
        return self.m > self.xp.lift(other).m

    __radd__, __rmul__ = __add__, __mul__


class Running:
    """The reading for results in `format`. 16-bit formats compute in binary32, and round once more
    where the form stores a value."""

    def __init__(
        self, format: Format, primitives: Mapping[str, Primitive], limit: float = 4.0
    ) -> None:
        work = working_format(format)
        self.rounding, self.storage = Rounding(work), Rounding(format)
        self.narrow = format.p < work.p
        self.wide = work.p == 53
        self.primitives, self.limit = primitives, limit
        self.unit = self.rounding.unit
        # covers underflow in the products that make a radius
        self.half = 2.0 * ETA if self.wide else self.rounding.half

    # --- into the context --------------------------------------------------------------------

    def array(self, values: Doubles) -> RunningValue:
        """An exact input, even where the format does not hold it: a kernel that rounds it first
        answers another question (`metrology.outputs`)."""
        return RunningValue(self, values, np.zeros(()))

    def number(self, value: Any) -> RunningValue:
        exact = Fraction(value)
        m = float(exact)
        held = Fraction(m) == exact and bool(self.rounding.holds(np.asarray(m)))
        return RunningValue(self, np.float64(m), np.float64(0.0 if held else self.unit * abs(m)))

    def lift(self, other: Any) -> RunningValue:
        return other if isinstance(other, RunningValue) else self.number(other)

    # --- one rounding ------------------------------------------------------------------------

    def _rounded(
        self, m: Any, r: Any, least: Any, over: Any, through: Any, away: Any = None
    ) -> RunningValue:
        """A result that is off by r before it is rounded. `away`: how far ẑ is from some number of
        the format. Two roundings, the first in a wider format, lose no more than three times
        that."""
        lost = self.unit * (np.abs(m) * _MORE + 2.0 * r)
        if away is not None:
            lost = np.minimum(lost, 3.0 * away)
        return self._in_range(m, r + (lost + least), over, through)

    def _in_range(self, m: Any, r: Any, over: Any, through: Any) -> RunningValue:
        """An m beyond float64 becomes the format's largest number: z is no smaller, which suffices
        for a quotient by it."""
        top = self.rounding.format.max
        beyond = ~(np.abs(m) + r <= top)
        if not np.any(beyond):
            return RunningValue(self, m, r, over, through)
        m = np.where(np.isinf(m), np.copysign(top, m), m)
        return RunningValue(self, m, np.where(np.isnan(r), np.inf, r), over | beyond, through)

    def _infinite_where(self, r: Any, mask: Any) -> Any:
        return np.where(mask, np.inf, r)

    def add(self, a: RunningValue, b: RunningValue) -> RunningValue:
        over = a.over | b.over
        r = a.r + b.r
        if np.any(over):
            r = self._infinite_where(r, over & (np.signbit(a.m) != np.signbit(b.m)) & (b.m != 0.0))
        away = _size(b) if _exact_scalar(a) else _size(a) if _exact_scalar(b) else None
        return self._rounded(a.m + b.m, r, 0.0, over, a.through | b.through | over, away)

    def multiply(self, a: RunningValue, b: RunningValue) -> RunningValue:
        m, over = a.m * b.m, a.over | b.over
        r = (np.abs(a.m) + a.r) * b.r + (np.abs(b.m) + 2.0 * b.r) * a.r
        if np.any(over):  # 0 times infinity; beyond float64, too, the product's size is unknown
            zero = (np.abs(a.m) <= 2.0 * a.r) | (np.abs(b.m) <= 2.0 * b.r)
            r = self._infinite_where(r, over & (zero | (self.wide & (np.abs(m) < _LARGE))))
        through = a.through | b.through | over
        least = np.where(_zero(a) | _zero(b), 0.0, self.half)
        if _power_of_two(a) or _power_of_two(b):  # exact, but for underflow
            return self._in_range(m, r + least, over, through)
        return self._rounded(m, r, least, over, through)

    def divide(self, a: RunningValue, b: RunningValue) -> RunningValue:
        m = a.m / b.m
        above, least = a.r, np.abs(b.m)
        if np.any(b.r):
            least = least - 2.0 * b.r * _UP
            above = above + (np.abs(a.m) + a.r) / least * b.r + self.wide * 4.0 * ETA
        r = np.where(least > 0.0, above / least, np.inf)
        if np.any(b.over):  # the quotient, or 0
            nothing = (np.abs(a.m) + a.r) / np.abs(b.m) * 2.0
            r = np.where(b.over, np.where(least > 0.0, r, 0.0) + nothing, r)
            r = self._infinite_where(r, a.over & b.over)
        away = None
        if _exact_scalar(a) and a.m == 1.0:  # 1 / b - 1 = (1 - b) / b
            away = np.where(least > 0.0, (np.abs(b.m - 1.0) * _MORE + 2.0 * b.r) / least, np.inf)
        lost = np.where(_zero(a), 0.0, self.half)
        return self._rounded(m, r, lost, a.over, a.through | a.over, away)

    def square(self, a: RunningValue) -> RunningValue:
        """a². Exactly 1 for ±1, which every kernel has where tanh saturates."""
        product = self.multiply(a, a)
        is_one = (np.abs(a.m) == 1.0) & (a.r < _TAIL)
        if not np.any(is_one):
            return product
        return RunningValue(
            self, product.m, np.where(is_one, 4.0 * a.r, product.r), a.over, product.through
        )

    # --- functions ---------------------------------------------------------------------------

    def function(self, name: str, a: RunningValue) -> RunningValue:
        """|f(ẑ) - f(z)|, then `limit` ulp of f(ẑ), an ulp being at most 2 u |f| or η."""
        primitive = self.primitives[name]
        if self.wide or primitive.value is None:
            m = np.asarray(primitive.values(a.m))
        else:
            m = primitive.value(a.m)
        size = np.abs(m)
        r: Any = np.zeros(())
        if np.any(a.r):
            assert primitive.spread is not None, f"{name} of a rounded argument"
            r = np.where(np.asarray(a.r) > 0.0, primitive.spread(a.m, a.r, size), 0.0)
        limit = self.limit if primitive.limit is None else primitive.limit
        off = max(2.0 * limit * self.unit, _FLOAT64_ERROR)
        r = r + off * (size * _MORE + 2.0 * r) + 2.0 * limit * self.rounding.half
        if primitive.saturates:
            far = np.abs(a.m) - 2.0 * a.r > _SATURATED
            if np.any(far):
                assert primitive.spread is not None
                # the distance of f from ±1, 0 or 2
                tail = primitive.spread(a.m, np.ones(()), size) + ETA
                r = np.where(far, np.minimum(r, tail), r)
            return RunningValue(self, m, r)
        over = a.over if name != "exp" else a.over & (a.m > 0.0)
        return self._in_range(m, r, over, over)

    def __getattr__(self, name: str) -> Any:
        """The method of a library function."""
        if name not in self.__dict__.get("primitives", {}):
            raise AttributeError(name)
        return partial(self.function, name)

    def sqrt(self, a: RunningValue) -> RunningValue:
        """|√ẑ - √z| = |ẑ - z| / (√ẑ + √z) <= r / (2 √(a - 2 r)), at most √r; then half an ulp."""
        m = np.sqrt(a.m)
        r = np.zeros(())
        if np.any(a.r):
            least = np.sqrt(np.maximum(a.m - 2.0 * a.r, 0.0))
            r = np.sqrt(a.r) * _MORE
            r = np.where(least > 0.0, np.minimum(r, a.r / (2.0 * least)), r)
        return self._rounded(m, r, 0.0, a.over, a.through | a.over)

    # --- what a kernel may do ----------------------------------------------------------------

    def store(self, a: RunningValue) -> RunningValue:
        """a, kept in the storage format; overflow there is not excused."""
        if not self.narrow:
            return a
        lost = self.storage.unit * (np.abs(a.m) + 2.0 * a.r) + self.storage.half
        return RunningValue(self, a.m, a.r + np.where(_zero(a), 0.0, lost), a.over, a.through)

    def either(self, a: RunningValue, b: RunningValue) -> RunningValue:
        """The wider of two bounds; where one value leaves the format's range, the other's."""
        first, second = _known(a), _known(b)
        if np.all(first) and np.all(second):
            return RunningValue(self, a.m, np.maximum(a.r, b.r), a.over | b.over)
        neither = ~(first | second)
        first, second = first | (neither & (a.r < np.inf)), second | (neither & (b.r < np.inf))
        r = np.maximum(np.where(first, a.r, 0.0), np.where(second, b.r, 0.0))
        r = np.where(first | second, r, np.inf)
        over = (a.over & first) | (b.over & second)
        return RunningValue(self, np.where(first, a.m, b.m), r, over, neither)

    def where(self, mask: Any, a: RunningValue, b: RunningValue) -> RunningValue:
        pairs = (a.m, b.m), (a.r, b.r), (a.over, b.over), (a.through, b.through)
        return RunningValue(
            self,
            *(
                a_part if a_part is b_part else np.where(mask, a_part, b_part)
                for a_part, b_part in pairs
            ),
        )

    def maximum(self, a: RunningValue, b: RunningValue) -> RunningValue:
        """The maximum of an input and a number, without rounding."""
        return RunningValue(self, np.maximum(a.m, b.m), np.maximum(a.r, b.r))

    def minimum(self, a: RunningValue, b: RunningValue) -> RunningValue:
        return -self.maximum(-a, -b)

    def bound(self, result: RunningValue) -> Array:
        """sup |ẑ - z| of a result that is delivered in the storage format; infinite where an
        intermediate result leaves the format's range."""
        return np.where(_known(result), self.store(result).r * _UP, np.inf)


def _size(a: RunningValue) -> Any:
    """At least |ẑ|."""
    return np.abs(a.m) + 2.0 * a.r


def _exact_scalar(a: RunningValue) -> bool:
    """A number of the format."""
    return np.ndim(a.m) == 0 and float(a.r) == 0.0


def _zero(a: RunningValue) -> Any:
    """Exactly 0."""
    return (a.m == 0.0) & (a.r == 0.0)


def _known(a: RunningValue) -> Any:
    return (a.r < np.inf) & ~np.asarray(a.through)


def _power_of_two(a: RunningValue) -> bool:
    return _exact_scalar(a) and abs(np.frexp(a.m)[0]) == 0.5
