"""ULP errors and distances against Fraction, exhaustively where the format allows it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import from_fractions
from refkernels.metrology import NO_DISTANCE, ulp, ulp_distance, ulp_error

NARROW = [formats.BINARY16, formats.BFLOAT16]
STORED = [*NARROW, formats.BINARY32, formats.BINARY64]


def every_finite(format: formats.Format) -> np.ndarray:
    """Every finite number of a 16-bit format, in order, +0 and -0 side by side."""
    values = np.arange(1 << 16, dtype=np.uint16).view(format.dtype)
    with np.errstate(invalid="ignore"):
        values = values[np.isfinite(values)]
    return values[np.argsort(values.astype(np.float64), kind="stable")]


def floor_log2(z: Fraction) -> int:
    guess = abs(z).numerator.bit_length() - z.denominator.bit_length()
    return guess - 1 if abs(z) < Fraction(2) ** guess else guess


def exact_ulp(z: Fraction, format: formats.Format) -> Fraction:
    exponent = format.emin if z == 0 else max(floor_log2(z), format.emin)
    return Fraction(2) ** (exponent - format.p + 1)


@pytest.mark.parametrize("format", NARROW, ids=str)
def test_ulp_of_every_16_bit_number_is_goldbergs(format: formats.Format) -> None:
    values = every_finite(format).astype(np.float64)
    wanted = [float(exact_ulp(Fraction(v), format)) for v in values]
    assert values.size > 60_000
    np.testing.assert_array_equal(ulp(values, format), wanted)


@pytest.mark.parametrize("format", NARROW, ids=str)
@pytest.mark.parametrize("towards", [-np.inf, np.inf])
def test_every_16_bit_neighbour_is_at_its_exact_error(
    format: formats.Format, towards: float
) -> None:
    z = every_finite(format)
    z = z[z != 0]
    with np.errstate(over="ignore"):
        got = np.nextafter(z, np.array(towards, dtype=z.dtype))
    wide_z, wide_got = z.astype(np.float64), got.astype(np.float64)
    beyond = np.copysign(2.0 ** (format.emax + 1), wide_got)
    wide_got = np.where(np.isinf(wide_got), beyond, wide_got)
    errors = ulp_error(got, wide_z)
    np.testing.assert_array_equal(errors.value, (wide_got - wide_z) / ulp(wide_z, format))
    np.testing.assert_array_equal(errors.uncertainty, 0.0)
    np.testing.assert_array_equal(ulp_distance(got, z), 1)


@pytest.mark.parametrize("format", NARROW, ids=str)
def test_distances_of_all_16_bit_numbers_from_a_few_are_differences_of_ranks(
    format: formats.Format,
) -> None:
    values = every_finite(format)
    values = values[~((values == 0) & np.signbit(values))]
    ranks = np.arange(values.size)
    for place in (0, 1, values.size // 3, values.size // 2, values.size - 1):
        chosen = np.full_like(values, values[place])
        np.testing.assert_array_equal(ulp_distance(values, chosen), np.abs(ranks - place))


@pytest.mark.parametrize("format", [formats.BINARY32, formats.BINARY64], ids=str)
def test_at_every_power_of_two_the_error_below_is_half_an_ulp(format: formats.Format) -> None:
    powers = np.ldexp(1.0, np.arange(format.emin - format.p + 1, format.emax + 1))
    z = powers.astype(format.dtype)
    below, above = (np.nextafter(z, np.array(t, dtype=z.dtype)) for t in (-np.inf, np.inf))
    expected = np.where(powers > format.min_normal, -0.5, -1.0)
    assert z.size > 250
    np.testing.assert_array_equal(ulp_error(below, powers).value, expected)
    np.testing.assert_array_equal(ulp_error(above, powers).value, 1.0)
    np.testing.assert_array_equal(ulp_error(-below, -powers).value, -expected)
    np.testing.assert_array_equal(ulp_distance(below, above), 2)


def test_distance_spans_all_of_float64() -> None:
    top = np.array([np.inf])
    assert ulp_distance(top, -top)[0] == 2 * 0x7FF0_0000_0000_0000
    most = np.array([np.finfo(np.float32).max])
    assert ulp_distance(most, -most)[0] == 2 * 0x7F7F_FFFF


def test_distance_of_nan_is_never_small() -> None:
    a = np.array([np.nan, np.nan, 1.0, -0.0], dtype=np.float32)
    b = np.array([-np.nan, 1.0, np.nan, 0.0], dtype=np.float32)
    assert ulp_distance(a, b).tolist() == [0, NO_DISTANCE, NO_DISTANCE, 0]
    with pytest.raises(ValueError, match="one format"):
        ulp_distance(a, b.astype(np.float64))


def test_distance_from_an_enclosure_is_from_its_rounding() -> None:
    truth = Enclosure(np.array([1.0, 1.0]), np.array([2.0**-54, -(2.0**-55)]))
    got = np.array([1.0, 1.0 + 2.0**-23], dtype=np.float32)
    assert ulp_distance(got, truth).tolist() == [0, 1]


def test_errors_are_undefined_for_specials_and_at_exact_zeros() -> None:
    got = np.array([np.nan, np.nan, 1.0, np.inf, 1.0, 1e-45, 0.0, np.inf], dtype=np.float32)
    z = np.array([np.nan, 1.0, np.nan, np.inf, np.inf, 0.0, 0.0, 1e39])
    errors = ulp_error(got, z).value
    np.testing.assert_array_equal(np.isnan(errors), [1, 1, 1, 1, 1, 1, 0, 1])


def test_infinity_counts_as_the_next_power_of_two_where_the_truth_is_finite() -> None:
    most = float(formats.BINARY32.max)
    assert ulp_error(np.array([np.inf], np.float32), np.array([most])).value[0] == 1.0
    almost = Enclosure(np.array([2.0**128 - 2.0**103]), np.array([-1.0]))
    assert ulp_error(np.array([np.inf], np.float32), almost).value[0] == 0.5


def test_a_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        ulp_error(np.ones(2), np.ones(3))


floats64 = st.floats(allow_nan=False, allow_infinity=False, width=64)


@st.composite
def truth_and_answer(draw: st.DrawFn) -> tuple[formats.Format, Fraction, float]:
    """A rational of any magnitude and a number of the format near it or far from it."""
    format = draw(st.sampled_from(STORED))
    z = Fraction(draw(st.integers(-(2**120), 2**120))) * Fraction(2) ** draw(
        st.integers(format.emin - 190, format.emax - 122)
    )
    z /= draw(st.sampled_from([1, 3, 7]))
    near = draw(st.booleans())
    base = float(z) if near else draw(floats64)
    got = formats.round_to([base], format)
    if draw(st.booleans()):
        got = np.nextafter(got, np.array(draw(st.sampled_from([-np.inf, np.inf])), got.dtype))
    return format, z, got


@given(truth_and_answer())
def test_ulp_error_is_within_its_uncertainty_of_the_rational_error(case: tuple) -> None:
    format, z, got = case
    truth = from_fractions([z], (1,))
    error = ulp_error(got, truth)
    if z == 0:
        assert error.value[0] == 0.0 if got[0] == 0 else math.isnan(error.value[0])
        return
    counted = Fraction(2) ** (format.emax + 1) * (1 if got[0] > 0 else -1)
    if not math.isinf(got[0]):
        counted = Fraction(float(got[0]))
    elif math.isnan(error.value[0]):
        assert np.isinf(truth.round(format)[0][0])
        return
    wanted = (counted - z) / exact_ulp(z, format)
    if math.isinf(error.value[0]):
        assert abs(wanted) >= Fraction(2) ** 1023
        return
    apart = abs(Fraction(float(error.value[0])) - wanted)
    # One rounding of the difference, and what underflows far below an ulp.
    assert apart <= Fraction(error.uncertainty[0]) + abs(wanted) / 2**51 + Fraction(1, 2**100)


@given(
    st.sampled_from(STORED),
    st.floats(1.0, 2.0),
    st.integers(-20, 20),
    st.floats(0, 1e-3),
    st.floats(-1, 1),
    st.integers(-4, 4),
)
def test_the_error_at_any_point_of_the_enclosure_is_within_the_uncertainty(
    format: formats.Format, hi: float, power: int, width: float, where: float, steps: int
) -> None:
    hi = math.ldexp(1.0 + (hi - 1.0) * width, power % 5)
    truth = Enclosure(np.array([hi]), 0.0, np.array([hi * width]))
    got = formats.round_to([hi * (1 + steps * format.u)], format)
    error = ulp_error(got, truth)
    point = Fraction(hi) + Fraction(hi * width) * Fraction(where)
    wanted = (Fraction(float(got[0])) - point) / exact_ulp(point, format)
    apart = abs(Fraction(float(error.value[0])) - wanted)
    assert apart <= Fraction(float(error.uncertainty[0])) * (1 + Fraction(1, 2**48))


def test_a_radius_at_a_power_of_two_uses_the_smaller_ulp() -> None:
    truth = Enclosure(np.array([1.0, 1.5]), 0.0, np.array([2.0**-30, 2.0**-30]))
    errors = ulp_error(np.ones(2, np.float32) * np.array([1, 1.5], np.float32), truth)
    assert errors.uncertainty.tolist() == [2.0**-6, 2.0**-7]


def test_an_interval_through_zero_has_no_ulp() -> None:
    truth = Enclosure(np.array([0.0, 1e-60]), 0.0, np.array([1e-10, 1e-59]))
    errors = ulp_error(np.array([1.0, 1e-45], np.float32), truth)
    assert np.isnan(errors.value[0])
    assert np.isinf(errors.uncertainty[0])
    assert errors.value[1] == pytest.approx(1.0)  # within the subnormals every ulp is the same


def test_other_array_kinds_and_layouts_are_taken() -> None:
    got = np.arange(1, 13, dtype=np.float32).reshape(3, 4).T
    got.flags.writeable = False
    np.testing.assert_array_equal(ulp_error(got, got).value, np.zeros((4, 3)))
    assert ulp_error(np.float32(1), np.float64(1)).value.shape == ()
    assert ulp_error([], []).value.shape == (0,)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "tf32", "float32", "float64"])
def test_ulp_is_goldberg_s_on_both_sides_of_every_power_of_two(name: str) -> None:
    format = formats.get(name)
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    below = np.nextafter(powers, 0)
    exponents = np.arange(-1074, 1024)
    for z, floor in ((powers, exponents), (-powers, exponents), (below, exponents - 1)):
        expected = np.ldexp(1.0, np.maximum(floor, format.emin) - format.p + 1)
        np.testing.assert_array_equal(ulp(z, format), expected)
    np.testing.assert_array_equal(ulp([0.0, -0.0], format), format.min_subnormal)
    assert np.isnan(ulp([np.inf, -np.inf, np.nan], format)).all()
    assert ulp(3.0, format).shape == ()


def test_distance_of_scalars_of_either_sign_warns_of_nothing() -> None:
    assert ulp_distance(np.float32(-1.0), np.float32(1.0)) == 2 * 0x3F800000
    assert ulp_distance(1.0, -1.0) == 2 * 0x3FF0000000000000
