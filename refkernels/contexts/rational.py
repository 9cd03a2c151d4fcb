"""Rational: exact fractions, and sums of their square roots; the last tier of algebraic formulas.

It decides ties and exact zeros: a value that is not a fraction is neither. Functions other than the
root have rational values at a few points only (exp 0 = 1); elsewhere they are refused.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.arithmetic.grids import NumberGrid
from refkernels.contexts.context import fraction
from refkernels.contexts.objects import Objectwise, data
from refkernels.contexts.surd import Irrational, Surd, root
from refkernels.contexts.value import Value

__all__ = ["Irrational", "Rational", "values"]

_LONGEST = 1 << 16  # bits of a power: a longer one is not a tie
_AT_ZERO = {
    "exp": 1,
    "expm1": 0,
    "log1p": 0,
    "tanh": 0,
    "erf": 0,
    "erfc": 1,
    "sin": 0,
    "cos": 1,
    "atan": 0,
}


class Rational(Objectwise):
    """Exact fractions and surds. Raises `Irrational` where a value is neither, ZeroDivisionError
    for 1 / 0."""

    name = "Rational"

    def element(self, value: Any) -> Fraction:
        return fraction(value)

    def pi(self) -> Value:
        raise Irrational("pi is not a rational.")

    def power(self, a: Value, exponent: int) -> Value:
        """Raises `Irrational` for one of too many bits."""
        return self.each(lambda x: _power(x, exponent), a)

    def real_power(self, a: Value, exponent: Value) -> Value:
        """Of a perfect 2^j-th power, 2^j being the exponent's denominator."""
        return self.each(_real_power, a, exponent)

    def primitive(self, name: str, a: Value) -> Value:
        return self.each(_RULES.get(name, lambda x: _at_point(name, x)), a)

    def pivot(self, a: Value, axis: int = -1) -> Value:
        return self.max(a, axis)

    def compare(self, a: Any, b: Any) -> tuple[bool, bool]:
        return a < b, not a < b

    def larger(self, a: Any, b: Any) -> Any:
        return b if a < b else a

    def step(self, a: Value, grid: NumberGrid) -> Value:
        """Raises `Irrational` for a root: its place on the grid is no tie."""

        def rounded(x: Any) -> Fraction:
            if type(x) is not Fraction:
                raise Irrational(f"{x} is not a rational.")
            return grid.of_rational(x)

        return self.each(rounded, a)

    def union(self, a: Any, b: Any) -> Any:
        if a == b:
            return a
        raise Irrational("At a kink every number between two slopes is a derivative.")


def _real_power(x: Fraction, y: Fraction) -> Fraction:
    n, d = y.numerator, y.denominator
    base: Fraction | None = x if x > 0 and not d & (d - 1) else None
    while base is not None and d > 1:
        base, d = (base if base == 1 else root(base)), d // 2
    if base is None:
        raise Irrational(f"{x}^{y} is not a rational, or is not defined.")
    return _power(base, n)


def _power(x: Any, n: int) -> Any:
    bits = max(x.numerator.bit_length(), x.denominator.bit_length()) if type(x) is Fraction else 1
    if abs(n) * bits > _LONGEST and x not in (0, 1):
        raise Irrational(f"A power with the exponent {n} has too many bits to compute.")
    return x**n


def _at_point(name: str, x: Any) -> Fraction:
    if name == "log":
        if x == 1:
            return Fraction(0)
    elif x == 0:
        return Fraction(_AT_ZERO[name])
    raise Irrational(f"{name}({x}) is not a rational.")


_RULES = {"sqrt": Surd.root_of, "rsqrt": lambda x: 1 / Surd.root_of(x)}


def values(value: Value) -> list[Any]:
    """The fractions, and surds, in C order."""
    return list(np.asarray(data(value)).reshape(-1))
