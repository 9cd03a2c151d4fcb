"""Integers and back: nothing lost, and no ball that its Enclosure does not contain."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.arithmetic.exact import (
    from_fractions,
    from_integer_balls,
    to_fraction,
    to_integers,
)

floats = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(floats, max_size=6))
def test_to_integers_is_exact(values: list[float]) -> None:
    whole, exponent = to_integers(np.array(values, dtype=np.float64))
    assert [m * Fraction(2) ** exponent for m in whole] == [Fraction(v) for v in values]


def test_to_integers_spans_the_whole_range() -> None:
    values = np.array([[5e-324, -1.7976931348623157e308], [0.0, -0.0]])
    whole, exponent = to_integers(values)
    assert [m * Fraction(2) ** exponent for m in whole] == [Fraction(v) for v in values.ravel()]


integers = st.one_of(
    st.integers(-(2**400), 2**400),
    st.integers(-(2**53), 2**53),
    st.sampled_from([2**k + d for k in (53, 54, 106, 107, 108, 300, 301, 400) for d in (-1, 0, 1)]),
    st.builds(lambda a, b: (a << 53) + b, st.integers(2**52, 2**53), st.integers(0, 2**53)),
)


@given(
    integers,
    st.one_of(st.just(0), st.integers(0, 2**60), st.integers(0, 2**420)),
    st.one_of(st.integers(-1300, 1000), st.integers(-40, 40)),
)
def test_a_ball_is_contained_and_hi_is_rounded(mid: int, radius: int, exponent: int) -> None:
    one = from_integer_balls([mid], [radius], [exponent], (1,))
    power = Fraction(2) ** exponent
    for end in (mid - radius, mid, mid + radius):
        assert one.contains(0, end * power)
    hi, lo = float(one.hi[0]), float(one.lo[0])
    assert math.isfinite(hi)
    assert hi + lo == hi
    if mid:
        slack = Fraction(1, 2**104) * abs(mid * power)
        unit = Fraction(2) ** (int(one.scale[0]) - 1074)
        width = Fraction(float(one.radius[0])) * Fraction(2) ** int(one.scale[0])
        assert width <= radius * power * (1 + Fraction(1, 2**50)) + slack + 2 * unit


@given(st.fractions(), st.integers(-1200, 1200))
def test_a_fraction_is_contained_tightly(value: Fraction, power: int) -> None:
    exact = value * Fraction(2) ** power
    one = from_fractions([exact], (1,))
    assert one.contains(0, exact)
    assert bool(one.exact_zero[0]) == (exact == 0)
    width = Fraction(float(one.radius[0])) * Fraction(2) ** int(one.scale[0])
    assert width <= abs(exact) / 2**104
    if int(one.scale[0]) == 0 and exact:
        assert float(one.hi[0]) == float(exact)


@given(floats)
def test_a_float_comes_back_exactly(value: float) -> None:
    one = from_fractions([Fraction(value)], ())
    assert float(one.radius) == 0.0
    assert to_fraction(one.hi, one.lo, one.scale) == Fraction(value)


def test_shapes_and_empties_are_kept() -> None:
    assert from_fractions([], (0, 3)).shape == (0, 3)
    assert from_fractions([Fraction(k) for k in range(6)], (2, 3)).shape == (2, 3)
    assert to_integers(np.empty(0)) == ([], 0)


@pytest.mark.parametrize(
    ("mid", "radius", "exponent"),
    [
        (1, 2**400, -1300),  # hi itself is far below the smallest float64
        ((1 << 2200) + 1, 0, -2100),  # lo is 2^-2200 of hi: below what any scale holds
        ((1 << 2200) - 1, 0, 0),
        ((1 << 2200) + 3, 1, -3000),
        (3, 1, -1075),
        ((1 << 170) + 1, 1, -1060),
    ],
)
def test_what_underflows_is_in_the_radius(mid: int, radius: int, exponent: int) -> None:
    one = from_integer_balls([mid], [radius], [exponent], (1,))
    for end in (mid - radius, mid, mid + radius):
        assert one.contains(0, end * Fraction(2) ** exponent)


def test_a_lo_that_underflows_still_breaks_the_tie() -> None:
    middle = (2**24 + 1) << 2300  # halfway between two float32
    one = from_integer_balls([middle + 1, middle - 1], [0, 0], [-2324, -2324], (2,))
    assert one.round("float32")[0].tolist() == [1.0 + 2.0**-23, 1.0]
