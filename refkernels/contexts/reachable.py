"""Reachable: what a right kernel may compute where an intermediate result leaves the range.

A value is a `Bound` value of unlimited exponents, R, and a set W. Every ẑ of a kernel lies within r
of z (R), or in W, if on the way to it a result was rounded beyond the largest number or among the
subnormals. So what a rounding makes of such numbers in R begins a W (`computed.left_range`), and an
operation takes operands from both, at least one from W; a sum takes each term from either. A result
of which nothing in R leaves the range has an empty W: None, if that holds for all elements.

A rounding may be omitted, as in `Bound`: then ẑ stays in R. Beyond the largest number, a result
that is not rounded to infinity at once is so at a later operation, or is never and stays in R. So
the standard deviation of numbers near 1e30 is infinite in float32 or right, not 123.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas, formats
from refkernels.arithmetic.formats import Format, without_range
from refkernels.arithmetic.grids import NumberGrid
from refkernels.arithmetic.rounding import Rounding
from refkernels.contexts import computed
from refkernels.contexts.ball import lower, outward, upper
from refkernels.contexts.bound import Bound
from refkernels.contexts.bound_value import BoundValue, parts
from refkernels.contexts.computed import Computed, hull, left_range, nothing, of_ends, rounded
from refkernels.contexts.context import Context, Index
from refkernels.contexts.value import Mask, Value

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_UNSIGNED = ("sqrt", "rsqrt", "exp")
_BLOCK = 1 << 22  # terms of products that are kept at once


class ReachableValue(BoundValue):
    """R, W, and whether a zero among them is +0."""

    __slots__ = ("beyond", "unsigned")

    def __init__(
        self, value: BoundValue, beyond: Computed | None = None, unsigned: bool = False
    ) -> None:
        super().__init__(value.context, value.exact, value.error, value.loose)
        self.beyond = None if beyond is None or beyond.empty.all() else beyond
        self.unsigned = unsigned

    @property
    def within(self) -> Computed:
        """R as a set."""
        with np.errstate(all="ignore"):
            radius = outward(self.exact.radius + self.error)
            low, high = lower(self.exact.mid, radius), upper(self.exact.mid, radius)
        if self.unsigned:
            low = np.maximum(low, 0.0)
        return of_ends(low, high, unsigned=self.unsigned)

    @property
    def outside(self) -> Computed:
        """W, in the shape of R."""
        return nothing(self.shape) if self.beyond is None else self.beyond

    @property
    def all(self) -> Computed:
        return self.within if self.beyond is None else hull(self.within, self.beyond)


@dataclass(frozen=True)
class _Comparison(Mask):
    """A comparison of R, and where it may hold and may not with W."""

    may: Bools
    may_not: Bools

    def __invert__(self) -> Mask:
        return _Comparison(self.no, self.yes, self.may_not, self.may)

    def __and__(self, other: Mask) -> Mask:
        mask, (may, may_not) = super().__and__(other), _possible(other)
        return _Comparison(mask.yes, mask.no, self.may & may, self.may_not | may_not)

    def __or__(self, other: Mask) -> Mask:
        mask, (may, may_not) = super().__or__(other), _possible(other)
        return _Comparison(mask.yes, mask.no, self.may | may, self.may_not & may_not)


def _possible(mask: Mask | Bools) -> tuple[Bools, Bools]:
    if isinstance(mask, _Comparison):
        return mask.may, mask.may_not
    return (~mask.no, ~mask.yes) if isinstance(mask, Mask) else (mask, ~mask)


class Reachable(Bound):
    """`working` and `storage` are those of `Bound`; so are the other `options`."""

    def __init__(
        self, working: Format | str, storage: Format | str | None = None, **options: Any
    ) -> None:
        inner, outer = formats.get(working), formats.get(storage or working)
        super().__init__(without_range(inner), without_range(outer), **options)
        self.limited, self.delivered = Rounding(inner), Rounding(outer)
        self.name = f"Reachable({self.working.format})"

    def ends(self, result: Value) -> tuple[Doubles, Doubles, Bools]:
        """W of a result that is delivered in the storage format."""
        beyond = _of(self.store(result)).outside
        return beyond.low, beyond.high, beyond.nan

    # --- W of a result -----------------------------------------------------------------------

    def _range(self, value: BoundValue) -> Rounding:
        """The rounding of a result, with its range."""
        return Rounding(formats.BINARY64) if value.loose and self.scalars else self.limited

    def _with(
        self,
        value: BoundValue,
        *sets: Computed,
        underflow: bool = True,
        unsigned: bool = False,
        exact: bool = False,
        rounding: Rounding | None = None,
        lost: float = 0.0,
    ) -> ReachableValue:
        """A result whose R is that of `value`: W is `sets`, rounded unless `exact`, and what leaves
        the range from R. `lost`: how far a library's function may be off among subnormals."""
        limited = rounding or self._range(value)
        result = ReachableValue(value, unsigned=unsigned)
        beyond = [found if exact else rounded(found, limited) for found in sets]
        if not exact:
            within = result.within
            low, high = within.low - lost, within.high + lost
            begun = left_range(low, high, limited, underflow)
            beyond += [] if begun is None else [begun]
        if beyond:
            joined = hull(*beyond)._replace(unsigned=unsigned)
            joined = joined.moved(lambda part: np.broadcast_to(part, value.shape))
            result = ReachableValue(value, joined, unsigned)
        return result

    @staticmethod
    def _combined(operation: Callable[..., Computed], *values: Value) -> list[Computed]:
        """An operation of operands from R and W, at least one of them from W."""
        operands = [_of(value) for value in values]
        if all(operand.beyond is None for operand in operands):
            return []
        if len(operands) == 1:
            return [operation(operands[0].outside)]
        x, y = operands
        pairs = [(x.beyond, y.within), (x.within, y.beyond), (x.beyond, y.beyond)]
        return [operation(*pair) for pair in pairs if pair[0] is not None and pair[1] is not None]

    # --- into the context, and single operations ---------------------------------------------

    def array(self, values: npt.NDArray[Any]) -> ReachableValue:
        value = super().array(values)
        unsigned = not np.signbit(value.exact.mid).any() and not value.exact.radius.any()
        return self._with(value, unsigned=unsigned, exact=not value.error.any())

    def _scalar(self, exact: Any) -> ReachableValue:
        value = super()._scalar(exact)
        return self._with(value, unsigned=bool(np.all(value.exact.mid >= 0.0)))

    def enter(self, a: Value) -> ReachableValue:
        x = _of(a)
        return self._with(super().enter(x), *self._sets(x), unsigned=x.unsigned) if x.loose else x

    @staticmethod
    def _sets(x: ReachableValue) -> list[Computed]:
        return [] if x.beyond is None else [x.beyond]

    def add(self, a: Value, b: Value) -> ReachableValue:
        unsigned = _of(a).unsigned and _of(b).unsigned
        sets = self._combined(computed.add, *self._met(a, b)[:2])
        return self._with(super().add(a, b), *sets, underflow=_loose(a, b), unsigned=unsigned)

    def multiply(self, a: Value, b: Value) -> ReachableValue:
        unsigned = _of(a).unsigned and _of(b).unsigned
        sets = self._combined(computed.multiply, *self._met(a, b)[:2])
        return self._with(super().multiply(a, b), *sets, unsigned=unsigned)

    def divide(self, a: Value, b: Value) -> ReachableValue:
        unsigned = _of(a).unsigned and _of(b).unsigned
        sets = self._combined(computed.divide, *self._met(a, b)[:2])
        return self._with(super().divide(a, b), *sets, unsigned=unsigned)

    def square(self, a: Value) -> ReachableValue:
        sets = self._combined(computed.square, a)
        return self._with(super().square(a), *sets, unsigned=True)

    def power(self, a: Value, exponent: int) -> ReachableValue:
        """By multiplications, of which the last one is the farthest out; a negative power is
        (1 / x)^n or 1 / x^n."""
        if exponent < 0:
            return _of(super().power(a, exponent))
        value, sets = super().power(a, exponent), []
        if exponent > 1 and _of(a).beyond is not None:
            factors = [_of(a).all] * exponent
            product = functools.reduce(
                lambda x, y: rounded(computed.multiply(x, y), self.limited), factors
            )
            sets = [product.where(~_of(a).outside.empty)]
        elif exponent == 1:
            sets = self._sets(_of(a))
        return self._with(value, *sets, unsigned=exponent % 2 == 0 or _of(a).unsigned)

    def negative(self, a: Value) -> ReachableValue:
        sets = self._combined(Computed.negative, a)
        return self._with(super().negative(a), *sets, exact=True)

    def absolute(self, a: Value) -> ReachableValue:
        sets = self._combined(computed.absolute, a)
        return self._with(super().absolute(a), *sets, exact=True, unsigned=True)

    def _function(self, name: str, x: BoundValue, positive: bool) -> ReachableValue:
        rounding = self._range(x)
        limit = 0.5 if name == "sqrt" else self.limit
        sets = self._combined(lambda a: computed.function(name, a, limit, rounding), x)
        value = super()._function(name, x, positive)
        if name == "sqrt":
            return self._with(value, *sets, underflow=False, unsigned=True)
        lost = 2.0 * limit * rounding.half
        return self._with(value, *sets, unsigned=name in _UNSIGNED, lost=lost)

    def library(
        self, formula: Callable[..., Value], limit: int, inputs: Sequence[Value], *beside: Any
    ) -> ReachableValue:
        """Nothing is known of the result where an input has left the range."""
        value = parts(super().library(formula, limit, inputs, *beside))
        lost = [~_of(item).outside.empty for item in inputs]
        anything = of_ends(np.full(value.shape, -np.inf), np.inf, True)
        return self._with(value, *(anything.where(where) for where in lost if where.any()))

    # --- reductions --------------------------------------------------------------------------

    def _summed_up(
        self, value: BoundValue, x: ReachableValue, add_up: computed.Total, n: int
    ) -> Any:
        """A sum. Without a term from W, only an overflow leaves the range."""
        terms = x.all
        total = computed.total(terms, add_up, n, self.limited)
        affected = add_up((~x.outside.empty).astype(np.float64)) > 0.0
        infinite = hull(
            total.where(total.high == np.inf)._replace(low=np.full(total.low.shape, np.inf)),
            total.where(total.low == -np.inf)._replace(high=np.full(total.low.shape, -np.inf)),
        )
        beyond = hull(total.where(affected), infinite.where(~affected))
        beyond = beyond._replace(nan=total.nan)
        return self._with(value, beyond, exact=True, unsigned=x.unsigned)

    def sum(self, a: Value, axis: int = -1) -> ReachableValue:
        x = self.enter(a)
        value = super().sum(x, axis)
        return self._summed_up(value, x, lambda part: part.sum(axis, keepdims=True), x.shape[axis])

    def mean(self, a: Value, axis: int = -1) -> ReachableValue:
        total, n = self.sum(a, axis), a.shape[axis]
        count = of_ends(np.full(total.shape, float(n)), float(n), unsigned=True)
        sets = self._combined(
            lambda part: rounded(computed.divide(part, count), self.limited), total
        )
        return self._with(super().mean(a, axis), *sets, unsigned=total.unsigned)

    def cumsum(self, a: Value, axis: int = -1) -> ReachableValue:
        x = self.enter(a)
        value = super().cumsum(x, axis)
        return self._summed_up(value, x, lambda part: np.cumsum(part, axis), x.shape[axis])

    def scatter_add(self, a: Value, index: Index, length: int) -> ReachableValue:
        x = self.enter(a)

        def add_up(part: Doubles) -> Doubles:
            result = np.zeros((length, *part.shape[1:]))
            np.add.at(result, index, part)
            return result

        return self._summed_up(super().scatter_add(x, index, length), x, add_up, index.size)

    newton_schulz, logaddexp = Context.newton_schulz, Context.logaddexp  # type: ignore[assignment]

    def _multiplied(self, name: str, a: Value, axis: int) -> ReachableValue:
        """Any partial product may leave the range where the product of the factors above 1, or of
        those below, does: then 0, infinity and NaN are possible, and all numbers between."""
        x, value = self.enter(a), super()._multiplied(name, a, axis)
        with np.errstate(all="ignore"):
            sizes = computed.absolute(x.all)
            top = np.maximum(sizes.high, 1.0).prod(axis, keepdims=True)
            least = np.where(sizes.high == 0.0, 1.0, np.minimum(sizes.low, 1.0))
            bottom = least.prod(axis, keepdims=True)
            lost = self.limited.beyond(top * 1.01) | (
                bottom < self.limited.format.min_normal * 1.01
            )
            lost |= (~x.outside.empty).any(axis, keepdims=True)
        shape = value.shape
        anything = of_ends(np.full(shape, 0.0 if x.unsigned else -np.inf), np.inf, True)
        return self._with(value, anything.where(np.broadcast_to(lost, shape)), unsigned=x.unsigned)

    def welford(self, a: Value, axis: int = -1) -> tuple[ReachableValue, ReachableValue]:
        """As two passes compute them, but for what the steps on the way may lose (as
        `accumulation.moments` has it) where these underflow. Where a square of a difference of
        partial means may overflow, the sum may be infinite; where a multiple of a mean may, so may
        the mean, and NaN is possible."""
        x, n = self.enter(a), a.shape[axis]
        exact_mean, exact_squares = super().welford(x, axis)
        mean = self.mean(x, axis)
        squares = self.sum(self.square(self.subtract(x, mean)), axis)
        least, lost = self.limited.format.min_normal, (n + 8.0) * 2.0 * self.limited.half
        with np.errstate(all="ignore"):
            low, high = x.all.low.min(axis, keepdims=True), x.all.high.max(axis, keepdims=True)
            reach, spread = np.maximum(-low, high), squares.all.high
            steep = self.limited.beyond(np.maximum(2.0 * n * spread, 4.0 * np.square(reach)))
            far = self.limited.beyond(2.0 * n * reach)
            small = reach < least * 2.0**40
            tiny = (spread < least * 2.0**40) | small
        infinite = of_ends(
            np.where(low < 0.0, -np.inf, np.inf), np.where(high > 0.0, np.inf, -np.inf)
        )
        means = [
            *self._sets(mean),
            self._wider(mean, lost).where(small),
            infinite._replace(nan=far).where(far),
        ]
        low, high, nan, _ = self._wider(squares, lost * (9.0 + np.log2(n)))
        sums = [
            *self._sets(squares),
            of_ends(np.maximum(low, 0.0), high, nan).where(tiny),
            of_ends(np.full(squares.shape, np.inf), np.inf, far).where(steep | far),
        ]
        return self._with(exact_mean, *means), self._with(exact_squares, *sums, unsigned=True)

    @staticmethod
    def _wider(x: ReachableValue, by: float) -> Computed:
        """R and W, and what lies at most so far from them."""
        low, high, nan, _ = x.all
        return of_ends(low - by, high + by, nan)

    def matmul(self, a: Value, b: Value) -> ReachableValue:
        """Of operands in R that overflow nowhere, products may still underflow, by η/2 each."""
        x, y = self.enter(a), self.enter(b)
        value, n = super().matmul(x, y), x.shape[-1]
        lost = n * self.limited.half * (1.0 + 2.0**-40)
        with np.errstate(all="ignore"):
            if x.beyond is None and y.beyond is None:
                sizes = [np.abs(operand.exact.mid) + operand.exact.radius for operand in (x, y)]
                reach = blas.product(
                    *(size + part.error for size, part in zip(sizes, (x, y), strict=True))
                )
                if not self.limited.beyond(reach * 1.01).any():
                    within = ReachableValue(value).within
                    wider = of_ends(within.low - lost, within.high + lost)
                    return self._with(value, wider.where(reach > 0.0))
            length = max(_BLOCK // max(n * math.prod(value.shape) // max(value.shape[-2], 1), 1), 1)
            parts_ = [
                self._dots(x.all.moved(lambda p, k=k: p[..., k : k + length, :]), y.all)
                for k in range(0, max(value.shape[-2], 1), length)
            ]
            low, high, nan = (
                np.concatenate(columns, axis=-2)
                for columns in zip(*(part[:3] for part in parts_), strict=True)
            )
        return self._with(value, of_ends(low - lost, high + lost, nan))

    def _dots(self, a: Computed, b: Computed) -> Computed:
        """The products of rows and columns, summed."""
        left = a.moved(lambda part: part[..., :, :, None])
        products = computed.multiply(left, b.moved(lambda part: part[..., None, :, :]))
        return computed.total(
            products, lambda part: part.sum(-2), a.low.shape[-1] + 1, self.limited
        )

    # --- choice ------------------------------------------------------------------------------

    def max(self, a: Value, axis: int = -1) -> ReachableValue:
        return self._largest(super().max(a, axis), self.enter(a), axis)

    def pivot(self, a: Value, axis: int = -1) -> ReachableValue:
        return self._largest(super().pivot(a, axis), self.enter(a), axis)

    def _largest(self, value: BoundValue, x: ReachableValue, axis: int) -> ReachableValue:
        if x.beyond is None:
            return ReachableValue(value)
        any_from = (~x.outside.empty).any(axis, keepdims=True)
        low, high = (part.max(axis, keepdims=True) for part in x.all[:2])
        nan = x.all.nan.any(axis, keepdims=True)
        return self._with(value, of_ends(low, high, nan).where(any_from), exact=True)

    def less(self, a: Value, b: Value) -> Mask:
        mask = super().less(a, b)
        x, y = self.enter(a).all, self.enter(b).all
        nan = x.nan | y.nan
        return _Comparison(mask.yes, mask.no, (x.low < y.high) | nan, ~(x.high < y.low) | nan)

    def where(self, mask: Mask | Bools, a: Value, b: Value) -> ReachableValue:
        x, y = self.enter(a), self.enter(b)
        value = super().where(mask, x, y)
        may, may_not = _possible(mask)
        sets = [branch.outside.where(can) for branch, can in ((x, may), (y, may_not))]
        if isinstance(mask, Mask):
            sets += [x.within.where(may & mask.no), y.within.where(may_not & mask.yes)]
        return self._with(value, *sets, exact=True, unsigned=x.unsigned and y.unsigned)

    def maximum(self, a: Value, b: Value) -> ReachableValue:
        sets = self._combined(computed.maximum, self.enter(a), self.enter(b))
        unsigned = _of(a).unsigned or _of(b).unsigned
        return self._with(super().maximum(a, b), *sets, exact=True, unsigned=unsigned)

    def step(self, a: Value, grid: NumberGrid) -> ReachableValue:
        sets = self._combined(lambda x: computed.step(x, grid), self.enter(a))
        return self._with(super().step(a, grid), *sets, exact=True)

    def either(self, a: Value, b: Value) -> ReachableValue:
        x, y = _of(a), _of(b)
        sets = [*self._sets(x), *self._sets(y)]
        unsigned = x.unsigned and y.unsigned
        return self._with(super().either(x, y), *sets, exact=True, unsigned=unsigned)

    def rearrange(self, change: Callable[..., Any], *values: Value) -> ReachableValue:
        value = super().rearrange(change, *values)
        items = [_of(item) if value.loose else self.enter(item) for item in values]
        unsigned = all(item.unsigned for item in items)
        if all(item.beyond is None for item in items):
            return ReachableValue(value, unsigned=unsigned)
        columns = zip(*(item.outside[:3] for item in items), strict=True)
        low, high, nan = (change(*column) for column in columns)
        moved = Computed(low, high, nan, unsigned)
        return self._with(value, moved, exact=True, unsigned=unsigned)

    def store(self, a: Value) -> ReachableValue:
        return self._in_format(super().store(a), self.enter(a), self.delivered)

    def narrow(self, a: Value, format: str) -> ReachableValue:
        narrow = formats.get(format)
        value = self._kept(a, Rounding(without_range(narrow)))
        return self._in_format(value, self.enter(a), Rounding(narrow))

    def _in_format(
        self, value: BoundValue, x: ReachableValue, rounding: Rounding
    ) -> ReachableValue:
        if not rounding.narrower(self.limited):
            return x
        return self._with(value, *self._sets(x), unsigned=x.unsigned, rounding=rounding)


def _of(value: Value) -> ReachableValue:
    value = parts(value)
    return value if isinstance(value, ReachableValue) else ReachableValue(value)


def _loose(a: Value, b: Value) -> bool:
    return parts(a).loose != parts(b).loose
