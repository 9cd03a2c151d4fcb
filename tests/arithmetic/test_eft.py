"""Error-free transformations: result + error is the exact result, in float32 and float64."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refkernels.arithmetic import eft
from refkernels.arithmetic.jit import njit

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
