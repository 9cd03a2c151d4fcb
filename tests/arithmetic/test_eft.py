"""Error-free transformations, of numbers and of arrays: result + error is the exact result."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from fallback_runs import same_bits
from hypothesis import assume, given
from hypothesis import strategies as st

from refkernels.arithmetic import eft
from refkernels.arithmetic.interpreted import by_rationals
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.transformations import multiply_add

SPLITTER = {np.float32: 2.0**12 + 1, np.float64: 2.0**27 + 1}


@njit
def fma(a: Any, b: Any, c: Any) -> Any:
    return eft.fma(a, b, c)


@st.composite
def operands(draw: st.DrawFn, reach: float = 0.9) -> tuple[type, Any, Any]:
    """Two floats of one type; `reach` limits the exponents so that nothing overflows."""
    kind = draw(st.sampled_from([np.float32, np.float64]))
    width = 32 if kind is np.float32 else 64
    top = float(np.finfo(kind).max) ** reach
    top = float(kind(top))
    number = st.floats(-top, top, width=width, allow_nan=False)
    a = draw(number)
    b = draw(number | st.sampled_from([-a, a, 1.0, float(np.nextafter(kind(-a), kind(0)))]))
    return kind, kind(a), kind(b)


@given(operands())
def test_two_sum_residual_is_exact(case: tuple[type, Any, Any]) -> None:
    kind, a, b = case
    s, e = eft.two_sum(a, b)
    assert kind(s) == kind(a + b)
    assert Fraction(float(s)) + Fraction(float(e)) == Fraction(float(a)) + Fraction(float(b))


@given(operands())
def test_fast_two_sum_residual_is_exact_for_ordered_operands(case: tuple) -> None:
    kind, a, b = case
    if abs(a) < abs(b):
        a, b = b, a
    s, e = eft.fast_two_sum(a, b)
    assert kind(s) == kind(a + b)
    assert Fraction(float(s)) + Fraction(float(e)) == Fraction(float(a)) + Fraction(float(b))


@given(operands(0.49))
def test_two_prod_residual_is_exact(case: tuple[type, Any, Any]) -> None:
    kind, a, b = case
    exact = Fraction(float(a)) * Fraction(float(b))
    info = np.finfo(kind)
    assume(exact == 0 or abs(exact) >= Fraction(float(info.tiny)) * 2 ** (info.nmant + 1))
    for product, error in (eft.two_prod(a, b), eft.two_prod_dekker(a, b, kind(SPLITTER[kind]))):
        assert kind(product) == kind(a * b)
        assert Fraction(float(product)) + Fraction(float(error)) == exact


@given(operands(0.49))
def test_split_halves_are_short_and_exact(case: tuple[type, Any, Any]) -> None:
    kind, a, _ = case
    high, low = eft.split(a, kind(SPLITTER[kind]))
    assert Fraction(float(high)) + Fraction(float(low)) == Fraction(float(a))
    bits = 12 if kind is np.float32 else 26
    for part in (high, low):
        m = int(math.ldexp(math.frexp(float(part))[0], 53))
        assert m == 0 or (abs(m) // (m & -m)).bit_length() <= bits


@given(operands(0.49), st.data())
def test_fma_rounds_once(case: tuple[type, Any, Any], data: st.DataObject) -> None:
    kind, a, b = case
    product = kind(a * b)
    c = data.draw(st.sampled_from([-product, product, kind(1), kind(0), a]))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    answer = fma(a, b, c)
    if kind is np.float64:
        wanted = float(exact)
    else:
        from refkernels.arithmetic.exact import from_fractions

        wanted = float(from_fractions([exact], ()).round("float32")[0])
    assert float(answer) == wanted


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_fma_keeps_its_type(kind: type) -> None:
    third = kind(1) / kind(3)
    error = fma(third, kind(3), kind(-1))
    assert Fraction(float(error)) == Fraction(float(third)) * 3 - 1


TRIED = 20_000


def test_multiply_add_rounds_once() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, TRIED)) * 2.0 ** rng.integers(-150, 150, (3, TRIED))
    kind = rng.integers(0, 8, TRIED)
    short = np.float32(rng.standard_normal((2, TRIED)))  # products of few bits: ties
    a, b = np.where(kind < 3, short, (a, b))
    product = a * b
    near = rng.choice([0.0, 1.0, -1.0, 3.0], TRIED) * 2.0 ** rng.integers(-54, 60, TRIED)
    c = np.where(kind % 2 == 0, product * near, c)  # cancels, or meets the last places
    c = np.where(kind == 1, np.nextafter(-product, rng.choice([-np.inf, np.inf], TRIED)), c)
    c[kind == 3] = rng.choice([0.0, -0.0], (kind == 3).sum())
    a[::50] = rng.choice([0.0, -0.0], len(a[::50]))
    exact = [by_rationals(*numbers) for numbers in zip(a, b, c, strict=True)]
    assert same_bits(multiply_add(a, b, c), np.array(exact))
    twice = product + c
    assert TRIED / 20 < (twice != exact).sum() < TRIED  # the cases need the one rounding


def test_multiply_add_breaks_ties_by_what_is_far_below() -> None:
    a = np.array([1.0 + 2.0**-27, 1.0 + 2.0**-52, 1.0 + 2.0**-30, 2.0**53 + 2.0])
    b = np.array([1.0 - 2.0**-27, 1.0 + 2.0**-52, 1.0 + 2.0**-30, 1.0 + 2.0**-52])
    for c in (-1.0, 2.0**-53, -(2.0**-53), 2.0**-54, 2.0**60, 3.0 * 2.0**-53, 2.0**-110):
        exact = [by_rationals(x, y, c) for x, y in zip(a, b, strict=True)]
        assert same_bits(multiply_add(a, b, np.full(4, c)), np.array(exact))
