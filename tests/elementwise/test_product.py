"""dy times a slope's enclosure: the exact product of every point inside stays inside."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from refkernels.arithmetic.double_double import U
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.elementwise import balls
from refkernels.elementwise.product import PRODUCT_ERROR, multiply, multiply_all

finite = st.floats(allow_nan=False, allow_infinity=False)
highs = st.floats(-1e300, 1e300).filter(lambda high: high != 0.0)
shares = st.floats(-0.5, 0.5)
widths = st.sampled_from([0.0, 2.0**-100, 2.0**-50, 2.0])


def slope_of(high: float, share: float, width: float) -> tuple[float, float, float]:
    low = share * math.ulp(high)
    if high + low != high:
        low = 0.0
    return high, low, abs(high) * width


def exact(parts) -> tuple[Fraction, Fraction]:
    return Enclosure(*(np.array([part]) for part in parts)).lower_upper(0)


@given(
    highs, highs, shares, st.sampled_from([0.0, 2.0**-100, 2.0**-50, 2.0]), st.integers(-900, 900)
)
def test_no_product_escapes(dy, high, share, width, scale):
    high, low, radius = slope_of(high, share, width)
    product = multiply(dy, high, low, radius, scale)
    lower, upper = exact(product)
    power = Fraction(2) ** scale
    ends = [
        Fraction(dy) * (Fraction(high) + Fraction(low) + sign * Fraction(radius)) * power
        for sign in (-1, 1)
    ]
    assert lower <= min(ends) <= max(ends) <= upper
    assert product[0] == product[0] + product[1]


@given(st.floats(1e-50, 1e50), st.floats(1e-50, 1e50), shares)
def test_the_product_adds_no_more_than_it_says(dy, high, share):
    high, low, radius = slope_of(high, share, 2.0**-100)
    hi, _, wide, scale = multiply(dy, high, low, radius, 0)
    assert scale == 0
    assert wide <= abs(hi) * (2.0**-100 + PRODUCT_ERROR) * (1 + 2.0**-40)


@given(st.floats(2.0**-20, 2.0**20), st.floats(2.0**-20, 1.0), st.integers(60, 450))
def test_a_low_part_beside_an_exact_one_keeps_its_relative_error(dy, share, depth):
    """(1 + x^2) dy: only x^2 separates it from a rounding boundary dy."""
    low = math.ldexp(share, -depth)
    hi, lo, radius, scale = multiply(dy, 1.0, low, low * 2.0**-50, 0)
    assert math.ldexp(hi, scale) == dy
    assert radius <= lo * (2.0**-49 + 4 * U) + 2.0**-1040


def test_special_values_are_those_of_one_ieee_product():
    values = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 5e-324, -1e308]
    dy, slope = (grid.reshape(-1) for grid in np.meshgrid(values, values))
    columns = [np.empty(dy.size) for _ in range(3)] + [np.empty(dy.size, np.int64)]
    parts = np.stack([slope, np.zeros(dy.size), np.zeros(dy.size)])
    multiply_all(dy, parts, np.zeros(dy.size, np.int64), *columns)
    with np.errstate(all="ignore"):
        product = dy * slope
    special = ~np.isfinite(dy) | ~np.isfinite(slope) | (dy == 0.0) | (slope == 0.0)
    np.testing.assert_array_equal(columns[0][special], product[special])
    signs = special & ~np.isnan(product)
    np.testing.assert_array_equal(np.signbit(columns[0][signs]), np.signbit(product[signs]))
    assert (columns[2] == 0.0).all()
    assert special.sum() > 60


def test_zero_times_a_slope_that_underflows_or_cancels_has_its_sign():
    assert math.copysign(1.0, multiply(-0.0, 5e-324, 0.0, 1e-323, -2000)[0]) == -1.0
    assert multiply(math.inf, 0.0, 0.0, 2.0**-60, 0)[0] == math.inf


@given(finite, st.integers(1, 10**6), st.integers(20, 200))
def test_balls_hold_what_they_stand_for(x, divisor, precision):
    value = Fraction(x) / divisor
    mid, radius, exponent = balls.of_fraction(value, precision)
    assert abs(value - mid * Fraction(2) ** exponent) <= radius * Fraction(2) ** exponent
    assert (radius == 0) == (value.denominator & (value.denominator - 1) == 0)
    mid, radius, exponent = balls.of_arb(lambda v: v / divisor, x, precision)
    assert abs(value - mid * Fraction(2) ** exponent) <= radius * Fraction(2) ** exponent
