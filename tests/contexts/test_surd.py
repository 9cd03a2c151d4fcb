"""Sums of square roots, exactly: zeros, ties and signs against Arb."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.contexts.surd import Irrational, Surd, plain

small = st.fractions(-6, 6, max_denominator=6)
radicands = st.fractions(0, 12, max_denominator=8)
terms = st.lists(st.tuples(radicands.filter(bool), small), max_size=4)


def arb(value: Any) -> Any:
    if isinstance(value, Fraction):
        return flint.arb(flint.fmpq(value.numerator, value.denominator))
    return sum((arb(c) * arb(s).sqrt() for s, c in value.terms), flint.arb(0))


def agree(value: Any, ball: Any) -> None:
    assert arb(plain(value)).overlaps(ball)


@given(terms, terms)
def test_sums_and_products_are_those_of_real_numbers(a: Any, b: Any) -> None:
    left, right = Surd(a), Surd(b)
    agree(left + right, arb(left) + arb(right))
    agree(left - right, arb(left) - arb(right))
    agree(left * right, arb(left) * arb(right))
    assert (left < right) == (arb(left) < arb(right))


@given(terms)
def test_what_cancels_is_zero_and_nothing_else_is(a: Any) -> None:
    doubled = Surd([(4 * s, c / 2) for s, c in a])  # the same number, written otherwise
    assert plain(doubled - Surd(a)) == 0
    value = Surd(a)
    assert (value.sign() == 0) == (plain(value) == 0)
    if value.sign():
        assert (value.sign() > 0) == (arb(value) > 0)


@given(radicands.filter(bool), small.filter(bool))
def test_one_root_has_an_inverse(s: Fraction, c: Fraction) -> None:
    value = Surd([(s, c)])
    assert plain(value / value) == 1
    assert plain(1 / value * c * Surd.root_of(s)) == 1
    assert plain(value**3 / value) == c * c * s


def test_other_numbers_are_refused() -> None:
    two = Surd([(Fraction(2), Fraction(1)), (Fraction(3), Fraction(1))])
    with pytest.raises(Irrational):
        _ = 1 / two
    with pytest.raises(Irrational):
        Surd.root_of(two)
    with pytest.raises(Irrational):
        Surd.root_of(Fraction(-1))
    with pytest.raises(ZeroDivisionError):
        _ = 1 / Surd([])
    assert Surd.root_of(Fraction(9, 4)) == Fraction(3, 2)


def test_a_sign_takes_as_many_digits_as_it_needs() -> None:
    """√(10^40 + 1) - 10^20 is 5e-21."""
    big = Surd([(Fraction(10**40 + 1), Fraction(1)), (Fraction(1), Fraction(-(10**20)))])
    assert big.sign() == 1
    assert Surd([(Fraction(2), Fraction(1))]) > 1
    assert not Surd([(Fraction(2), Fraction(1))]) > Fraction(3, 2)
