"""Each double-double operation keeps to its proven relative error."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.arithmetic import double_double as dd

Pair = tuple[float, float]


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Normalised pairs, many of them at the corners: powers of two, tails of half an ulp."""
    high = draw(
        st.floats(2.0**-100, 2.0**100)
        | st.integers(-60, 60).map(lambda k: 2.0**k)
        | st.integers(-60, 60).map(lambda k: math.nextafter(2.0**k, 0))
    )
    tail = draw(
        st.floats(-0.5, 0.5) | st.sampled_from([0.0, 0.5, -0.5, 0.4999999999999999, -0.25, 1e-20])
    )
    low = tail * math.ulp(high)
    if high + low != high:
        low = 0.0
    sign = draw(st.sampled_from([1.0, -1.0]))
    return sign * high, sign * low


def exact(pair: Pair) -> Fraction:
    return Fraction(pair[0]) + Fraction(pair[1])


def holds(answer: Pair, wanted: Fraction, error: float) -> None:
    high, low = answer
    assert high + low == high
    assert abs(exact(answer) - wanted) <= Fraction(error) * abs(wanted)


@given(pairs(), pairs(), st.sampled_from([1, -1]), st.booleans())
def test_sums_keep_their_bounds(a: Pair, b: Pair, sign: int, near: bool) -> None:
    if near:  # massive cancellation
        b = (-a[0], b[1] * (math.ulp(a[0]) / math.ulp(b[0])))
        if b[0] + b[1] != b[0]:
            b = (b[0], 0.0)
    b = (sign * b[0], sign * b[1])
    holds(dd.dd_add(*a, *b), exact(a) + exact(b), dd.ADD_ERROR)
    holds(dd.dd_add_double(*a, b[0]), exact(a) + Fraction(b[0]), dd.ADD_DOUBLE_ERROR)


@given(pairs(), pairs())
def test_products_keep_their_bounds(a: Pair, b: Pair) -> None:
    holds(dd.dd_mul(*a, *b), exact(a) * exact(b), dd.MUL_ERROR)
    holds(dd.dd_mul_double(*a, b[0]), exact(a) * Fraction(b[0]), dd.MUL_DOUBLE_ERROR)


@given(pairs(), pairs())
def test_quotients_keep_their_bounds(a: Pair, b: Pair) -> None:
    holds(dd.dd_div(*a, *b), exact(a) / exact(b), dd.DIV_ERROR)
    holds(dd.dd_div_double(*a, b[0]), exact(a) / Fraction(b[0]), dd.DIV_DOUBLE_ERROR)


@given(pairs())
def test_square_roots_keep_their_bound(a: Pair) -> None:
    a = (abs(a[0]), math.copysign(1, a[0]) * a[1])
    root = dd.dd_sqrt(*a)
    value, error = exact(root), Fraction(dd.SQRT_ERROR)
    assert root[0] + root[1] == root[0]
    assert (value * (1 - error)) ** 2 <= exact(a) * (1 + error**2)
    assert (value / (1 - error)) ** 2 >= exact(a)
    assert (value / (1 + error)) ** 2 <= exact(a)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [(dd.dd_add, 4), (dd.dd_mul, 4), (dd.dd_add_double, 3), (dd.dd_mul_double, 3), (dd.dd_sqrt, 2)],
)
def test_zero_is_taken(operation: Callable[..., Any], arguments: int) -> None:
    assert operation(*[0.0] * arguments) == (0.0, 0.0)
