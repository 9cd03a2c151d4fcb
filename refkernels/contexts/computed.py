"""The values that kernels may compute: extended intervals, and whether NaN is among them.

An operation on sets gives all results before their rounding, which `rounded` adds. A set is empty
where low > high and NaN is not in it. Zeros of either sign are in a set that holds 0, unless it is
`unsigned`, which only matters to a division. All operations are outward by a relative `_SLACK` at
least, which exceeds float64's own roundings.

An operation with a NaN operand gives NaN. 0 * inf, inf - inf, 0 / 0 and inf / inf give NaN where
both operands hold these values, and nothing else where they hold no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.grids import NumberGrid
from refkernels.arithmetic.rounding import Rounding
from refkernels.contexts import functions

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Total = Callable[[Doubles], Doubles]
_SLACK = 2.0**-44
_INF = np.inf
# Where each function is defined, and its values at both ends; those of sin and cos lie between.
_DOMAINS: dict[str, tuple[float, float, float]] = {
    "sqrt": (0.0, 0.0, _INF),
    "rsqrt": (0.0, _INF, 0.0),
    "exp": (-_INF, 0.0, _INF),
    "expm1": (-_INF, -1.0, _INF),
    "log": (0.0, -_INF, _INF),
    "log1p": (-1.0, -_INF, _INF),
    "tanh": (-_INF, -1.0, 1.0),
    "erf": (-_INF, -1.0, 1.0),
    "erfc": (-_INF, 2.0, 0.0),
    "atan": (-_INF, -np.pi / 2, np.pi / 2),
    "sin": (-_INF, -1.0, 1.0),
    "cos": (-_INF, -1.0, 1.0),
}


class Computed(NamedTuple):
    """Arrays of one shape: every value lies in [low, high], or is NaN where `nan` is set."""

    low: Doubles
    high: Doubles
    nan: Bools
    unsigned: bool = False

    @property
    def empty(self) -> Bools:
        return np.asarray((self.low > self.high) & ~self.nan)

    @property
    def infinite(self) -> Bools:
        """Which sets hold an infinity."""
        return np.asarray((self.low <= self.high) & (np.isinf(self.low) | np.isinf(self.high)))

    @property
    def zero(self) -> Bools:
        return np.asarray((self.low <= 0.0) & (self.high >= 0.0))

    def moved(self, change: Callable[..., Any]) -> Computed:
        return Computed(change(self.low), change(self.high), change(self.nan), self.unsigned)

    def negative(self) -> Computed:
        return Computed(-self.high, -self.low, self.nan)

    def where(self, mask: Any) -> Computed:
        """Empty where the mask is false."""
        low, high = np.where(mask, self.low, _INF), np.where(mask, self.high, -_INF)
        return Computed(low, high, self.nan & mask, self.unsigned)


def of_ends(low: Any, high: Any, nan: Any = False, unsigned: bool = False) -> Computed:
    low, high, nan = np.broadcast_arrays(low, high, nan)
    return Computed(np.asarray(low, np.float64), np.asarray(high, np.float64), nan, unsigned)


def nothing(shape: tuple[int, ...]) -> Computed:
    return Computed(
        np.full(shape, _INF), np.full(shape, -_INF), np.zeros(shape, np.bool_), unsigned=True
    )


def hull(*sets: Computed) -> Computed:
    """Every value of the sets, and what lies between."""
    lows, highs, nans, unsigned = zip(*sets, strict=True)
    low, high, nan = lows[0], highs[0], nans[0]
    for other in sets[1:]:
        low, high = np.minimum(low, other.low), np.maximum(high, other.high)
        nan = nan | other.nan
    return of_ends(low, high, nan, all(unsigned))


def rounded(values: Computed, rounding: Rounding) -> Computed:
    """The values with a rounding, or with none: kernels omit it in an FMA. Beyond the largest
    number all are infinite."""
    with np.errstate(all="ignore"):
        spread = rounding.unit + _SLACK
        low, high = (
            values.low - np.abs(values.low) * spread,
            values.high + np.abs(values.high) * spread,
        )
        low = np.where(np.isinf(values.low), values.low, low)
        high = np.where(np.isinf(values.high), values.high, high)
        near_low, near_high = _in_subnormals(low, high, rounding)
        low, high = np.minimum(low, near_low), np.maximum(high, near_high)
        low, high = _overflowed(low, high, rounding)
    return Computed(low, high, values.nan, values.unsigned)


def left_range(low: Doubles, high: Doubles, rounding: Rounding, underflow: bool) -> Computed | None:
    """What a rounding makes of numbers in [low, high] that exceed the largest one, or that lie
    among the subnormals; None where it is nothing. `underflow`: whether the numbers may have digits
    below the last one of the subnormals."""
    with np.errstate(all="ignore"):
        over, under = rounding.beyond(high), rounding.beyond(-low)
        over, under = over & (high > 0.0), under & (low < 0.0)
        least = rounding.format.min_normal
        tiny = (low < least) & (high > -least) & ~((low == 0.0) & (high == 0.0)) & (low <= high)
        tiny &= underflow
        if not (over.any() or under.any() or tiny.any()):
            return None
        found = of_ends(np.where(under, -_INF, _INF), np.where(over, _INF, -_INF))
        if tiny.any():
            ends = _in_subnormals(np.maximum(low, -least), np.minimum(high, least), rounding)
            found = hull(found, of_ends(*ends).where(tiny))
    return found


def _in_subnormals(low: Doubles, high: Doubles, rounding: Rounding) -> tuple[Doubles, Doubles]:
    """The ends after a rounding to a multiple of the smallest subnormal; a rounding to a wider
    format before it may carry an end over a tie."""
    power = rounding.format.p - 1 - rounding.format.emin
    tie = 0.5 + 2.0**-20
    nearest = (
        np.ceil(np.ldexp(low, power) - tie),
        np.floor(np.ldexp(high, power) + tie),
    )
    least = rounding.format.min_normal
    ends = [np.ldexp(end, -power) for end in nearest]
    return np.where(np.abs(low) < least, ends[0], low), np.where(
        np.abs(high) < least, ends[1], high
    )


def _overflowed(low: Doubles, high: Doubles, rounding: Rounding) -> tuple[Doubles, Doubles]:
    """The ends, with infinities for what exceeds the largest number, or may."""
    largest = rounding.format.max
    surely = largest * (1.0 + 2.0 * rounding.unit)
    some = low <= high
    low = np.where(some & ((low < -largest) | (low > surely)), np.copysign(_INF, low), low)
    high = np.where(some & ((high > largest) | (high < -surely)), np.copysign(_INF, high), high)
    return low, high


def add(a: Computed, b: Computed) -> Computed:
    with np.errstate(all="ignore"):
        opposite = ((a.high == _INF) & (b.low == -_INF)) | ((a.low == -_INF) & (b.high == _INF))
        never = ((a.low == _INF) & (b.high == -_INF)) | ((a.high == -_INF) & (b.low == _INF))
        low, high = a.low + b.low, a.high + b.high
        up = (a.low == _INF) | (b.low == _INF)
        down = (a.high == -_INF) | (b.high == -_INF)
        low = np.where(np.isnan(low), np.where(up, _INF, -_INF), low)
        high = np.where(np.isnan(high), np.where(down, -_INF, _INF), high)
    return _result(a, b, low, high, opposite, never)


def multiply(a: Computed, b: Computed) -> Computed:
    with np.errstate(all="ignore"):
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    undefined = (a.zero & b.infinite) | (b.zero & a.infinite)
    never = _only_zero(a) & _only_infinite(b) | _only_zero(b) & _only_infinite(a)
    return _result(a, b, *_ends(corners), undefined, never)


def divide(a: Computed, b: Computed) -> Computed:
    with np.errstate(all="ignore"):
        least = b.low + 0.0 if b.unsigned else b.low
        corners = [x / y for x in (a.low, a.high) for y in (least, b.high)]
        low, high = _ends(corners)
    anything = b.zero & (not b.unsigned)
    undefined = (a.zero & b.zero) | (a.infinite & b.infinite)
    never = _only_zero(a) & _only_zero(b) | _only_infinite(a) & _only_infinite(b)
    low, high = np.where(anything, -_INF, low), np.where(anything, _INF, high)
    return _result(a, b, low, high, undefined, never)


def square(a: Computed) -> Computed:
    with np.errstate(all="ignore"):
        least = np.where(a.zero, 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
        most = np.maximum(np.abs(a.low), np.abs(a.high))
        squares = of_ends(least * least, most * most, a.nan, unsigned=True)
    return squares.where((a.low <= a.high) | a.nan)


def absolute(a: Computed) -> Computed:
    least = np.where(a.zero, 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
    most = np.maximum(np.abs(a.low), np.abs(a.high))
    return of_ends(least, most, a.nan, unsigned=True).where((a.low <= a.high) | a.nan)


def maximum(a: Computed, b: Computed) -> Computed:
    low, high = np.maximum(a.low, b.low), np.maximum(a.high, b.high)
    none = np.zeros((), np.bool_)
    return _result(a, b, low, high, none, none)


def step(a: Computed, grid: NumberGrid) -> Computed:
    return of_ends(grid(a.low), grid(a.high), a.nan).where((a.low <= a.high) | a.nan)


def function(name: str, a: Computed, limit: float, rounding: Rounding) -> Computed:
    """The values of a library's function, which may be off by `limit` ulp."""
    start, first, last = _DOMAINS[name]
    some = a.low <= a.high
    with np.errstate(all="ignore"):
        if name in ("sin", "cos"):
            low, high, undefined = np.full_like(a.low, -1.0), np.ones_like(a.low), a.infinite
        else:
            ends = [np.where(some, np.maximum(end, start), 0.0) for end in (a.low, a.high)]
            values = [_value(name, end, start, first, last) for end in ends]
            low, high = _ends(values)
            undefined = some & (a.low < start)
        lost = 2.0 * limit * (rounding.unit + _SLACK)
        low = np.where(np.isinf(low), low, low - np.abs(low) * lost - limit * 2 * rounding.half)
        high = np.where(
            np.isinf(high), high, high + np.abs(high) * lost + limit * 2 * rounding.half
        )
    floor = min(first, last)
    low = np.maximum(low, floor) if floor == 0.0 else low
    found = of_ends(low, high).where(some & (a.high >= start))
    return found._replace(nan=a.nan | undefined, unsigned=floor == 0.0)


def _value(name: str, end: Doubles, start: float, first: float, last: float) -> Doubles:
    inside = (end > start) & np.isfinite(end)
    mid, _ = functions.value(name, np.where(inside, end, 0.5))
    return np.where(inside, mid, np.where(end == _INF, last, first))


def total(terms: Computed, add_up: Total, count: Any, rounding: Rounding) -> Computed:
    """Sums in any order, each partial sum rounded. `add_up` adds arrays as the sum does; `count`:
    at most so many terms. A partial sum lies between the sums of the negative and of the positive
    parts."""
    with np.errstate(all="ignore"):
        up = add_up((terms.low == _INF).astype(np.float64)) > 0.0
        down = add_up((terms.high == -_INF).astype(np.float64)) > 0.0
        maybe_up = add_up((terms.high == _INF).astype(np.float64)) > 0.0
        maybe_down = add_up((terms.low == -_INF).astype(np.float64)) > 0.0
        nan = add_up(terms.nan.astype(np.float64)) > 0.0
        low, high = (np.where(np.isfinite(end), end, 0.0) for end in (terms.low, terms.high))
        growth = np.asarray(count * (rounding.unit + _SLACK))
        above = add_up(np.maximum(high, 0.0))
        below = add_up(np.maximum(-low, 0.0))
        slack = (above + below) * growth
        least, most = add_up(low) - slack, add_up(high) + slack
        one_sign = (below == 0.0) | (above == 0.0)
        beyond_above = rounding.beyond(above + slack) | maybe_up
        beyond_below = rounding.beyond(below + slack) | maybe_down
        surely = rounding.format.max * (1.0 + 2.0 * rounding.unit)
        up |= one_sign & (least > surely) & ~maybe_down
        down |= one_sign & (most < -surely) & ~maybe_up
        low = np.where(beyond_below, -_INF, np.where(up, _INF, least))
        high = np.where(beyond_above, _INF, np.where(down, -_INF, most))
        low = np.where(up, _INF, low)
        high = np.where(down, -_INF, high)
        never = up & down
        low, high = np.where(never, _INF, low), np.where(never, -_INF, high)
        nan = nan | (beyond_above & beyond_below)
        low = np.where(terms.unsigned & (low < 0.0), 0.0, low)
    return Computed(low, high, nan, terms.unsigned)


def _result(
    a: Computed, b: Computed, low: Doubles, high: Doubles, undefined: Bools, never: Bools
) -> Computed:
    """The result of two operands: `undefined` where it may be NaN, `never` where it must be. It is
    empty where an operand is; NaN where an operand may be."""
    some = (a.low <= a.high) & (b.low <= b.high)
    both = ~(a.empty | b.empty)
    nan = both & ((undefined & some) | a.nan | b.nan)
    found = of_ends(low, high, unsigned=a.unsigned and b.unsigned).where(some & ~never)
    return found._replace(nan=np.broadcast_to(nan, found.low.shape))


def _ends(corners: Sequence[Doubles]) -> tuple[Doubles, Doubles]:
    """The least and the largest; a NaN corner is 0 times an infinity, whose neighbours count."""
    known = [np.where(np.isnan(corner), 0.0, corner) for corner in corners]
    return np.minimum.reduce(known), np.maximum.reduce(known)


def _only_zero(a: Computed) -> Bools:
    return np.asarray((a.low == 0.0) & (a.high == 0.0))


def _only_infinite(a: Computed) -> Bools:
    return np.asarray((a.low == _INF) | (a.high == -_INF))
