"""Surd: an exact sum of square roots of rationals, c_1 √s_1 + ... + c_k √s_k.

Norms give surds of rationals: x / √(mean x² + eps) is one term, and a gradient summed over rows has
one for each row. Radicands fall into classes: s and t share one where s t is the square of a
rational, and √t = √(s t) / s √s then moves t's term to s. Roots of different classes are linearly
independent over the rationals (Besicovitch 1940, doi:10.1112/jlms/s1-15.1.3). So a surd is zero
exactly if all its terms are, and rational exactly if only the class of 1 has a term: exact zeros
and ties are decided without computing a digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

_DIGITS = 64  # bits of the first attempt at a sign; doubled until they decide


class Irrational(ArithmeticError):
    """The formula has a value that has no exact representation here: another context answers."""


class Surd:
    """Terms (radicand, coefficient), radicands > 0 of different classes, coefficients not 0."""

    __slots__ = ("terms",)

    def __init__(self, terms: Iterable[tuple[Fraction, Fraction]]) -> None:
        merged: list[tuple[Fraction, Fraction]] = []
        for radicand, coefficient in terms:
            for place, (representative, sum_so_far) in enumerate(merged):
                ratio = root(representative * radicand)
                if ratio is not None:
                    merged[place] = (
                        representative,
                        sum_so_far + coefficient * ratio / representative,
                    )
                    break
            else:
                merged.append((radicand, coefficient))
        self.terms = tuple((s, c) for s, c in merged if c)

    @staticmethod
    def of(value: Any) -> Surd:
        """The surd of a rational; a surd unchanged."""
        return value if isinstance(value, Surd) else Surd([(Fraction(1), Fraction(value))])

    @staticmethod
    def root_of(value: Any) -> Surd | Fraction:
        """√ of a rational >= 0. Raises `Irrational` for a surd or a negative number."""
        square = plain(value)
        if not isinstance(square, Fraction) or square < 0:
            raise Irrational(f"The root of {value} is not a root of a rational.")
        exact = root(square)
        return exact if exact is not None else Surd([(square, Fraction(1))])

    def __add__(self, other: Any) -> Any:
        return plain(Surd([*self.terms, *Surd.of(other).terms]))

    __radd__ = __add__

    def __neg__(self) -> Surd:
        return Surd((s, -c) for s, c in self.terms)

    def __sub__(self, other: Any) -> Any:
        return self + -Surd.of(other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        pairs = ((a, b) for a in self.terms for b in Surd.of(other).terms)
        return plain(Surd((s * t, c * d) for (s, c), (t, d) in pairs))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * _inverse(Surd.of(other))

    def __rtruediv__(self, other: Any) -> Any:
        return Surd.of(other) * _inverse(self)

    def __pow__(self, exponent: int) -> Any:
        if exponent < 0:
            return _inverse(self) ** -exponent
        result: Any = Fraction(1)
        for _ in range(exponent):
            result = self * result
        return result

    def __abs__(self) -> Any:
        return -self if self.sign() < 0 else self

    def __lt__(self, other: Any) -> bool:
        return bool(Surd.of(self - other).sign() < 0)

    def __gt__(self, other: Any) -> bool:
        return bool(Surd.of(self - other).sign() > 0)

    def __repr__(self) -> str:
        return " + ".join(f"{c} √{s}" for s, c in self.terms) or "0"

    def sign(self) -> int:
        """-1, 0 or 1: a sum that is not zero has a digit that decides."""
        bits = _DIGITS if self.terms else 0
        while bits:
            total = sum(_scaled(s, c, bits) for s, c in self.terms)
            if abs(total) > len(self.terms):
                return 1 if total > 0 else -1
            bits *= 2
        return 0


def _scaled(radicand: Fraction, coefficient: Fraction, bits: int) -> int:
    """c √s 2^bits to within 1: the root of the square, rounded down in magnitude."""
    square = coefficient * coefficient * radicand * Fraction(4) ** bits
    size = math.isqrt(square.numerator // square.denominator)
    return size if coefficient > 0 else -size


def _inverse(value: Surd) -> Surd:
    """1 / (c √s) = √s / (c s). Raises ZeroDivisionError for 0, `Irrational` for several terms."""
    if not value.terms:
        raise ZeroDivisionError("1 / 0")
    if len(value.terms) > 1:
        raise Irrational(f"1 / ({value}) is not a sum of few roots.")
    ((radicand, coefficient),) = value.terms
    return Surd([(radicand, 1 / (coefficient * radicand))])


def plain(value: Any) -> Any:
    """A rational surd as a Fraction; any other unchanged."""
    if not isinstance(value, Surd):
        return Fraction(value)
    if not value.terms:
        return Fraction(0)
    if len(value.terms) == 1:
        exact = root(value.terms[0][0])
        if exact is not None:
            return value.terms[0][1] * exact
    return value


def root(value: Fraction) -> Fraction | None:
    """The rational square root, None if there is none."""
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return None
