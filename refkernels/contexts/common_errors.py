"""CommonErrors: a `Bound` in which the error of a statistic is one error, however often it is read.

`Bound` adds up |ẑ - z| of all operands: a mean that y = (x - m) r reads twice, in x - m and in r,
counts twice, each time with the worse sign. Here what a reduction gives has an error ε of its own,
|ε| <= its radius, and all that is computed from it keeps the multiple of ε that it holds:

    ẑ - z = Σ c_k ε_k + ρ       with every c_k in a ball C_k, and |ρ| <= rest

With hulls Â that hold a and every â, and the results' rests beside,

    a + b        C_a + C_b
    a b          A C_b + B̂ C_a                  âb̂ - ab = a(b̂-b) + b̂(â-a)
    a / b        (C_a - (A / B) C_b) / B̂         â/b̂ - a/b = ((â-a) - (a/b)(b̂-b)) / b̂
    a²           (Â + A) C_a
    f(a), a^n    F'(Â) C_a                        the mean value theorem
    sum          Σ C, over axes along which ε is the same

and then what rounds, which `Bound` says of operands that are exact within their hulls. All other
primitives take errors as numbers. An error is the smaller of this one and `Bound`'s: none grows.

Source: affine arithmetic, de Figueiredo and Stolfi (2004), doi:10.1023/B:NUMA.0000049462.70970.b6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.rounding import Rounding
from refkernels.contexts.ball import BallValue, U, lower, outward, upper
from refkernels.contexts.bound import Bound
from refkernels.contexts.bound_value import BoundValue, parts
from refkernels.contexts.gradient import SLOPES
from refkernels.contexts.value import Value

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StatisticErrors:
    """Results of a reduction, flat: the largest |ε| of each."""

    radius: Doubles


class Multiple(NamedTuple):
    """Of a source's errors: the factor C of each element, and the number of its ε."""

    factor: BallValue
    number: npt.NDArray[np.intp]


Multiples = Mapping[StatisticErrors, Multiple]
Slopes = tuple[BallValue, ...]


class Common(BoundValue):
    """A value that holds multiples of the errors of statistics."""

    __slots__ = ("multiples", "rest")

    def __init__(self, value: BoundValue, error: Any, multiples: Multiples, rest: Doubles) -> None:
        super().__init__(value.context, value.exact, error, value.loose)
        self.multiples = multiples
        self.rest = rest


class CommonErrors(Bound):
    """Takes what `Bound` takes."""

    @classmethod
    def of(cls, bound: Bound) -> CommonErrors:
        """The same arithmetic as that of another `Bound`."""
        xp = cls(bound.working.format)
        vars(xp).update({name: getattr(bound, name) for name in vars(xp)})
        return xp

    # --- linear in the errors ------------------------------------------------------------------

    def add(self, a: Value, b: Value) -> BoundValue:
        one = self.ball.number(1)
        return self._linear(super().add, lambda z, x, y: (one, one), a, b)

    def negative(self, a: Value) -> BoundValue:
        return self._linear(super().negative, lambda z, x: (self.ball.number(-1),), a)

    def multiply(self, a: Value, b: Value) -> BoundValue:
        return self._linear(super().multiply, lambda z, x, y: (self._hull(y), x.exact), a, b)

    def divide(self, a: Value, b: Value) -> BoundValue:
        def slopes(z: Any, x: BoundValue, y: BoundValue) -> Slopes:
            inverse = self.ball.divide(self.ball.number(1), self._hull(y))
            return inverse, self.ball.multiply(self.ball.negative(z), inverse)

        return self._single(self._linear(super().divide, slopes, a, b))

    def square(self, a: Value) -> BoundValue:
        def slopes(z: Any, x: BoundValue) -> Slopes:
            return (self.ball.add(self._hull(x), x.exact),)

        return self._linear(super().square, slopes, a)

    def power(self, a: Value, exponent: int) -> BoundValue:
        def slopes(z: Any, x: BoundValue) -> Slopes:
            power = self.ball.power(self._hull(x), exponent - 1)
            return (self.ball.multiply(self.ball.number(exponent), power),)

        power = super().power
        if exponent < 2:
            return power(a, exponent)
        return self._single(self._linear(lambda x: power(x, exponent), slopes, a))

    def primitive(self, name: str, a: Value) -> BoundValue:
        def slopes(z: Any, x: BoundValue) -> Slopes:
            hull = self._hull(x)
            slope: Any = SLOPES[name](self.ball, self.ball.function(name, hull), hull)
            return (slope,)

        function = super().primitive
        return self._single(self._linear(lambda x: function(name, x), slopes, a))

    def _kept(self, a: Value, rounding: Rounding) -> BoundValue:
        one, kept = self.ball.number(1), super()._kept
        return self._linear(lambda x: kept(x, rounding), lambda z, x: (one,), self.enter(a))

    def rearrange(self, change: Callable[..., Any], *values: Value) -> BoundValue:
        moved = super().rearrange(change, *values)
        value = values[0]
        if len(values) > 1 or not isinstance(value, Common):
            return moved
        multiples = {}
        for source, (factor, number) in value.multiples.items():
            factor = self.ball.rearrange(change, self._repeated(factor, value.shape))
            multiples[source] = Multiple(factor, change(np.broadcast_to(number, value.shape)))
        return Common(moved, moved.error, multiples, change(value.rest))

    def either(self, a: Value, b: Value) -> BoundValue:
        result = super().either(a, b)
        values = self.enter(a), self.enter(b)
        multiples: dict[StatisticErrors, Multiple] = {}
        for source in {**_multiples(values[0]), **_multiples(values[1])}:
            zero = Multiple(self.ball.number(0), np.zeros((), np.intp))
            held = [_multiples(value).get(source, zero) for value in values]
            numbers = [multiple.number for multiple in held if multiple is not zero]
            if not _same(numbers[0], numbers[-1]):
                return result
            lows, highs = (
                [end(factor.mid, factor.radius) for factor, _ in held] for end in (lower, upper)
            )
            hull = self.ball.between(np.minimum(*lows), np.maximum(*highs))
            multiples[source] = Multiple(hull, numbers[0])
        rest = np.maximum(_rest(values[0]), _rest(values[1]))
        return self._single(self._held(result, multiples, rest))

    # --- reductions ----------------------------------------------------------------------------

    def sum(self, a: Value, axis: int = -1) -> BoundValue:
        return self._source(self._reduced(self.enter(a), axis))

    def mean(self, a: Value, axis: int = -1) -> BoundValue:
        n = a.shape[axis]
        total = self._reduced(self.enter(a), axis)
        inverse = self.ball.divide(self.ball.number(1), self.ball.number(n))
        averaged = self._linear(lambda x: self._averaged(x, n), lambda z, x: (inverse,), total)
        return self._source(averaged)

    def norm(self, a: Value, axis: int = -1) -> BoundValue:
        return self._source(super().norm(a, axis))

    def welford(self, a: Value, axis: int = -1) -> tuple[BoundValue, BoundValue]:
        mean, squares = super().welford(a, axis)
        return self._source(mean), self._source(squares)

    def _reduced(self, a: BoundValue, axis: int) -> BoundValue:
        result = super().sum(a, axis)
        held = _multiples(a)
        if not held or not a.error.size:
            return result
        rest, multiples = _rest(a), {}
        for source, (factor, number) in held.items():
            factor, number = self._repeated(factor, a.shape), np.broadcast_to(number, a.shape)
            first = np.take(number, [0], axis)
            if _same(first, number):
                multiples[source] = Multiple(self.ball.sum(factor, axis), first)
            else:
                rest = rest + _size(source, Multiple(factor, number))
        with np.errstate(all="ignore"):
            rest = np.sum(rest, axis, keepdims=True) * (1.0 + 2.0 * a.shape[axis] * U)
            later = super().sum(self._exact(a), axis)
            return self._held(result, multiples, outward(rest + later.error))

    def _source(self, value: BoundValue) -> BoundValue:
        """The rest of its errors as errors of their own."""
        rest = _rest(value)
        source = StatisticErrors(rest.reshape(-1))
        one = self.ball.array(np.ones(value.shape))
        own = Multiple(one, np.arange(rest.size).reshape(rest.shape))
        multiples = {**_multiples(value), source: own}
        return Common(value, value.error, multiples, np.zeros(value.shape))

    def _single(self, value: BoundValue) -> BoundValue:
        """A statistic that is computed from others with one error of its own, whose multiples are
        exact; a value of more elements as it is."""
        if all(source.radius.size < value.error.size for source in _multiples(value)):
            return value
        return self._source(BoundValue(self, value.exact, value.error, value.loose))

    # --- the parts of an error -----------------------------------------------------------------

    def _linear(
        self,
        primitive: Callable[..., BoundValue],
        slopes: Callable[..., tuple[BallValue, ...]],
        *operands: Value,
    ) -> BoundValue:
        """The primitive's result, with the multiples that its operands' times the slopes give.
        `slopes` takes the exact result and the operands."""
        result = primitive(*operands)
        values = [parts(operand) for operand in operands]
        if not any(_multiples(value) for value in values):
            return result
        later = primitive(*map(self._exact, values))
        multiples: dict[StatisticErrors, Multiple] = {}
        with np.errstate(all="ignore"):
            rest = later.error
            for value, slope in zip(values, slopes(result.exact, *values), strict=True):
                rest = rest + (np.abs(slope.mid) + slope.radius) * _rest(value)
                for source, (factor, number) in _multiples(value).items():
                    share = Multiple(self.ball.multiply(slope, factor), number)
                    known = multiples.get(source)
                    if known is None:
                        multiples[source] = share
                    elif _same(known.number, number):
                        both = self.ball.add(known.factor, share.factor)
                        multiples[source] = Multiple(both, number)
                    else:
                        rest = rest + _size(source, share)
        return self._held(result, multiples, outward(rest))

    def _held(self, result: BoundValue, multiples: Multiples, rest: Doubles) -> BoundValue:
        """The result with the smaller of both errors."""
        rest = np.broadcast_to(np.where(np.isnan(rest), np.inf, rest), result.shape)
        with np.errstate(all="ignore"):
            error = rest
            for source, multiple in multiples.items():
                error = error + _size(source, multiple)
            error = np.minimum(result.error, outward(error))
        return Common(result, error, multiples, rest)

    def _repeated(self, factor: BallValue, shape: tuple[int, ...]) -> BallValue:
        parts_of_factor = factor.mid, factor.radius
        return self.ball.value(*(np.broadcast_to(part, shape) for part in parts_of_factor))

    def _exact(self, value: BoundValue) -> BoundValue:
        """What was computed, as if it were exact: anywhere in its hull."""
        return BoundValue(self, self._hull(value), 0.0, value.loose)


def _multiples(value: BoundValue) -> Multiples:
    return value.multiples if isinstance(value, Common) else {}


def _rest(value: BoundValue) -> Doubles:
    return value.rest if isinstance(value, Common) else value.error


def _size(source: StatisticErrors, multiple: Multiple) -> Doubles:
    """The largest |c ε|; infinite where nothing is known of one of them."""
    factor, number = multiple
    with np.errstate(all="ignore"):
        size = (np.abs(factor.mid) + factor.radius) * source.radius[number]
        return np.where(np.isnan(size), np.inf, size)


def _same(a: npt.NDArray[np.intp], b: npt.NDArray[np.intp]) -> bool:
    """Whether elements that meet have the same number."""
    return a is b or bool(np.all(a == b))


def says_little(bound: Doubles, size: Doubles) -> bool:
    """Whether a bound exceeds a sixteenth of the RMS of the exact values somewhere."""
    known = np.isfinite(size)
    if not known.any():
        return False
    largest = float(np.max(size, where=known, initial=0.0)) or 1.0
    with np.errstate(all="ignore"):
        rms = largest * np.sqrt(np.mean(np.square(size / largest), where=known))
        return bool(np.any(known & ~(bound <= rms / 16.0)))
