"""Arb: balls of arbitrary precision with unbounded exponents, the last tier of every formula.

Source: Johansson (2017), "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic",
doi:10.1109/TC.2017.2690633, through python-flint.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.grids import NumberGrid
from refkernels.contexts.context import fraction
from refkernels.contexts.objects import ObjectValue, Objectwise, data, objects
from refkernels.contexts.value import Value, not_a_value


class Arb(Objectwise):
    """Balls of `precision` bits, set by a `with` block: flint has one precision for the process.

        with Arb(256) as xp:
            y = softmax(xp, xp.array(x))

    Where a ball cannot decide, the result is wide, never wrong: 1 / 0 and the log of a ball that
    reaches 0 are NaN balls, which hold every number. Outside the block balls are only wider.
    """

    name = "Arb"

    def __init__(self, precision: int = 128) -> None:
        self.precision = precision
        self._entered: list[Any] = []

    def __enter__(self) -> Arb:
        self._entered.append(flint.ctx.workprec(self.precision))
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._entered.pop().__exit__(*exception)

    def array(self, values: npt.NDArray[Any]) -> ObjectValue:
        """Infinities stay infinite; NaN becomes the ball that holds every number."""
        if values.dtype.kind in "iu" or np.isfinite(to_float64(values)).all():
            return super().array(values)
        wide = to_float64(values)
        finite = np.isfinite(wide)
        balls = super().array(np.where(finite, wide, 0.0))
        special = objects([flint.arb(str(x)) for x in wide.reshape(-1).tolist()], wide.shape)
        return self.value(np.where(finite, balls.data, special))

    def element(self, value: Any) -> Any:
        if type(value) is float and math.isfinite(value):
            return flint.arb(value)  # every bit of it, at any precision
        exact = fraction(value)
        if exact.denominator == 1:
            return flint.arb(exact.numerator)
        return flint.arb(flint.fmpq(exact.numerator, exact.denominator))

    def pi(self) -> Value:
        return self.value(np.array(flint.arb.pi(), object))

    def square(self, a: Value) -> Value:
        return self.each(_square, a)

    def power(self, a: Value, exponent: int) -> Value:
        if exponent < 0:
            return self.divide(self.number(1), self.power(a, -exponent))
        return self.each(lambda x: _power(x, exponent), a)

    def primitive(self, name: str, a: Value) -> Value:
        return self.each(lambda x: _function(name, x), a)

    def logaddexp(self, a: Value, b: Value, log1p: bool = True) -> Value:
        return self.each(_logaddexp, a, b)

    def matmul(self, a: Value, b: Value) -> Value:
        """By flint's matrices, which at few bits are an order faster than its numbers."""
        left, right = data(a), data(b)
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        (m, k), n = left.shape[-2:], right.shape[-1]
        pairs = [np.broadcast_to(factor, (*batch, *factor.shape[-2:])) for factor in (left, right)]
        entries = []
        for at in np.ndindex(batch):
            x, y = (factor[at].reshape(-1).tolist() for factor in pairs)
            entries += (flint.arb_mat(m, k, x) * flint.arb_mat(k, n, y)).entries()
        return self.value(objects(entries, (*batch, m, n)))

    def pivot(self, a: Value, axis: int = -1) -> Value:
        return self.value(np.frompyfunc(lambda x: x.mid(), 1, 1)(data(self.max(a, axis))))

    def compare(self, a: Any, b: Any) -> tuple[bool, bool]:
        return bool(a < b), bool(a >= b)

    def larger(self, a: Any, b: Any) -> Any:
        return a.max(b)

    def union(self, a: Any, b: Any) -> Any:
        return a.union(b)

    def step(self, a: Value, grid: NumberGrid) -> Value:
        def rounded(x: Any) -> Any:
            if not x.is_finite():
                return flint.arb("nan")
            low, high = (self.element(grid.of_rational(end)) for end in _ends(x))
            return low.union(high)

        return self.each(rounded, a)


_LIMITS = {"erf": (-1, 1), "erfc": (2, 0)}


def _function(name: str, x: Any) -> Any:
    """f(x), its limit at an infinity (flint's erf is NaN there)."""
    if name in _LIMITS and not x.is_finite() and (x < 0 or x > 0):
        return flint.arb(_LIMITS[name][x > 0])
    return getattr(x, name)()


def _logaddexp(a: Any, b: Any) -> Any:
    """It moves no farther than the operand that moves farther."""
    x, y = a.mid(), b.mid()
    return x.max(y) + (-abs(x - y)).exp().log1p() + flint.arb(0, a.rad().max(b.rad()))


def _square(x: Any) -> Any:
    """x². Where x's ball holds 0, that of x² reaches below 0 by its own rounding at most (flint's
    power of such a ball is NaN)."""
    if x.contains(0):
        largest = x.abs_upper()
        return flint.arb(0).union(largest * largest)
    return x * x


def _power(x: Any, exponent: int) -> Any:
    if exponent == 0:
        return flint.arb(1)
    half = _square(_power(x, exponent // 2))
    return half * x if exponent % 2 else half


def ends(value: Value) -> list[tuple[Fraction, Fraction]]:
    """The exact ends of every (finite) ball, in C order."""
    if not isinstance(value, ObjectValue):
        raise not_a_value(value)
    return [_ends(x) for x in value.data.reshape(-1)]


def _ends(x: Any) -> tuple[Fraction, Fraction]:
    mid, rad = x.mid(), x.rad()
    middle, radius = _fraction(mid), _fraction(rad)
    return middle - radius, middle + radius


def _fraction(x: Any) -> Fraction:
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
