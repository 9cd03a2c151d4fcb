"""Formats and rounding: against the dtypes' casts, ml_dtypes' tables, and rationals everywhere."""

import math
from fractions import Fraction
from typing import Any, get_args

import gmpy2
import ml_dtypes
import numpy as np
import pytest
from hunting import HUNT
from hypothesis import given
from hypothesis import strategies as st

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.grids import Ties, grid

STORED = [formats.BINARY16, formats.BFLOAT16, formats.BINARY32, formats.BINARY64]
ALL = [*STORED, formats.TF32]


def rounded(z: Fraction, format: Format, away: bool = False) -> float:
    """z rounded to nearest, by integers alone; ties to even or away from zero."""
    if z == 0:
        return 0.0
    exponent = abs(z).numerator.bit_length() - z.denominator.bit_length()
    exponent -= abs(z) < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, format.emin) - format.p + 1)
    whole = math.floor(abs(z) / unit + Fraction(1, 2)) if away else round(abs(z) / unit)
    if whole * unit >= Fraction(2) ** (format.emax + 1):
        return math.inf if z > 0 else -math.inf
    return float(whole * unit) * (1 if z > 0 else -1)


@pytest.mark.parametrize("format", STORED, ids=str)
def test_a_format_agrees_with_its_dtype(format: Format) -> None:
    info = ml_dtypes.finfo(format.dtype)
    assert format.max == float(info.max)
    assert format.min_normal == float(info.tiny)
    assert format.min_subnormal == float(info.smallest_subnormal)
    assert 2 * format.u == float(info.eps)
    assert formats.get(format.name) is formats.get(format.dtype) is format
    assert formats.of(np.zeros(1, format.dtype)) is format
    assert format.bits_dtype.itemsize == format.dtype.itemsize


@pytest.mark.parametrize("unknown", ["float8", "int32", np.int64, object])
def test_unknown_formats_are_refused(unknown: object) -> None:
    with pytest.raises(ValueError, match="is not a floating-point format"):
        formats.get(unknown)  # type: ignore[arg-type]


def boundaries_of_16_bits(format: Format) -> np.ndarray:
    """Every number of the format, every midpoint, and the float64 neighbours of both."""
    values = np.arange(1 << 16, dtype=np.uint16).view(format.dtype)
    with np.errstate(invalid="ignore"):
        values = np.unique(values[np.isfinite(values)].astype(np.float64))
    values = np.append(values, [2.0 ** (format.emax + 1), 2.0 ** (format.emax + 2), np.inf])
    middles = (values[:-2] + values[1:-1]) / 2
    points = np.concatenate([values, middles])
    return np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)])


@pytest.mark.parametrize("format", [formats.BINARY16, formats.BFLOAT16], ids=str)
def test_round_to_16_bits_is_right_at_every_boundary(format: Format) -> None:
    """A run asks every third, numbers, midpoints and neighbours alike; a hunt all."""
    points = boundaries_of_16_bits(format)
    points = np.concatenate([points, -points])
    assert points.size > 700_000
    points = points[:: 3 if HUNT == 1 else 1]
    answers = formats.round_to(points, format).astype(np.float64)
    exact = [gmpy2.mpfr(z, 53) for z in points.tolist()]
    lowest = format.emin - format.p + 2
    with gmpy2.context(precision=format.p, emax=format.emax + 1, emin=lowest, subnormalize=True):
        np.testing.assert_array_equal(answers, [float(+z) for z in exact])  # by MPFR
    if format is formats.BINARY16:  # NumPy's float64 -> float16 rounds once, correctly
        with np.errstate(over="ignore"):
            direct = points.astype(np.float16)
        np.testing.assert_array_equal(answers, direct.astype(np.float64))
    np.testing.assert_array_equal(np.signbit(answers), np.signbit(points))


def test_round_to_float32_is_numpys_cast() -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 64, 200_000, dtype=np.uint64)
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    near = np.concatenate([powers, powers * (1 + 2.0**-24), powers * (1 - 2.0**-25)])
    values = np.concatenate([bits.view(np.float64), near, -near, [0.0, -0.0, np.inf, -np.inf]])
    with np.errstate(all="ignore"):
        direct = values.astype(np.float32)
    answers = formats.round_to(values, "float32")
    np.testing.assert_array_equal(answers, direct)
    np.testing.assert_array_equal(np.signbit(answers), np.signbit(direct))


def near_midpoints(rng: np.random.Generator, format: Format, size: int) -> np.ndarray:
    """float64 numbers a little off the midpoints between numbers of the format, subnormals too; by
    less than float32 can tell, so that a cast that goes by float32 rounds twice."""
    exponents = rng.integers(format.emin - 2, format.emax + 1, size)
    units = np.ldexp(1.0, np.maximum(exponents, format.emin) - format.p + 1)
    whole = np.floor(np.ldexp(rng.uniform(1.0, 2.0, size), exponents) / units)
    off = np.ldexp(rng.choice([-1.0, 0.0, 1.0], size), rng.integers(-44, -20, size))
    return rng.choice([-1.0, 1.0], size) * units * (whole + 0.5 + off)


@pytest.mark.parametrize("to", ALL, ids=str)
@pytest.mark.parametrize("own", STORED, ids=str)
def test_a_cast_rounds_once_whatever_the_formats(own: Format, to: Format) -> None:
    rng = np.random.default_rng(5)
    points = np.concatenate([near_midpoints(rng, f, 400) for f in (to, formats.BFLOAT16)])
    specials = [0.0, -0.0, np.inf, -np.inf, np.nan, *np.ldexp([1.9, -1.0], 127)]
    array = formats.round_to(np.concatenate([points, specials]), own)
    cast = formats.cast(array, to)
    assert cast.dtype == to.storage
    wide = cast.astype(np.float64)
    np.testing.assert_array_equal(wide, formats.round_to(array, to).astype(np.float64))
    np.testing.assert_array_equal(np.signbit(wide[:-3]), np.signbit(array[:-3]))
    finite = np.flatnonzero(np.isfinite(array))
    exact = [rounded(Fraction(float(array[i])), to) for i in finite]
    np.testing.assert_array_equal(wide[finite], exact)
    assert len(exact) > 400


@pytest.mark.parametrize("shape", [(), (0,), (3, 2)], ids=str)
def test_a_cast_keeps_the_shape_in_any_layout(shape: tuple[int, ...]) -> None:
    tie = 1.0 + 2.0**-8 + 2.0**-40
    array = np.full(shape, tie).T
    cast = formats.cast(array, "bfloat16")
    assert cast.shape == array.shape
    assert (cast.astype(float) == 1.0 + 2.0**-7).all()


def test_round_to_keeps_shape_order_and_kind() -> None:
    grid = np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(formats.round_to(grid, "bfloat16").astype(float), grid)
    assert formats.round_to(1.5, "float16").shape == ()
    assert formats.round_to([], "float32").shape == (0,)
    assert formats.round_to([1.0], "tf32").dtype == np.float32
    assert np.isnan(formats.round_to([np.nan], "float16")[0])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[float, float, int, Format]:
    """hi = fl(hi + lo) and a scale, thrown at the boundaries of the format they are scaled to."""
    format = draw(st.sampled_from(ALL))
    significand = draw(
        st.one_of(
            st.integers(1, 2 ** (format.p + 1)),  # numbers and midpoints
            st.sampled_from([2**k for k in range(54)]),
            st.sampled_from([2**k - 1 for k in range(1, 54)]),
            st.integers(1, 2**53 - 1),
        )
    )
    hi = float(min(significand, 2**53)) * draw(st.sampled_from([1.0, -1.0]))
    low = draw(st.sampled_from([0.0, 1.0, -1.0, 0.5, -0.5, 0.25, 2.0**-40, -(2.0**-40)]))
    lo = low * math.ulp(hi) / 2
    if hi + lo != hi:
        lo = 0.0
    target = draw(st.integers(format.emin - format.p - 4, format.emax + 2))
    scale = target - math.frexp(hi)[1] + 1
    shift = draw(st.sampled_from([0, -300, 300, scale if abs(scale) < 900 else 0]))
    return math.ldexp(hi, shift), math.ldexp(lo, shift), scale - shift, format


@given(pairs())
def test_round_pair_rounds_once(case: tuple[float, float, int, Format]) -> None:
    hi, lo, scale, format = case
    z = (Fraction(hi) + Fraction(lo)) * Fraction(2) ** scale
    answer = formats.round_pair(hi, lo, scale, format.p, format.emin, format.emax)
    wanted = rounded(z, format)
    assert answer == wanted
    assert math.copysign(1, answer) == (1 if z > 0 else -1)


@given(pairs())
def test_exponent_of_is_the_floor_of_the_logarithm(case: tuple) -> None:
    hi, lo, _, _ = case
    z = abs(Fraction(hi) + Fraction(lo))
    exponent = int(formats.exponent_of(hi, lo))
    assert Fraction(2) ** exponent <= z < Fraction(2) ** (exponent + 1)


@given(pairs())
def test_ties_away_rounds_away_from_zero(case: tuple) -> None:
    hi, _, scale, format = case
    value = math.ldexp(hi, max(min(scale, 900), -900) % 200)
    answer = float(formats.round_ties_away([value], format)[0])
    assert answer == rounded(Fraction(value), format, away=True)


def test_tf32_rounds_ties_away() -> None:
    values = [1024.5, -1024.5, 1025.5, 0.0, -0.0, np.inf, 2.0**-136, 3e38]
    answers = formats.round_ties_away(values, "tf32")
    assert answers[:3].tolist() == [1025.0, -1025.0, 1026.0]
    assert formats.round_to(values, "tf32")[0] == 1024.0
    assert np.signbit(answers[4])
    assert answers[5] == np.inf
    assert answers[6] == rounded(Fraction(2.0**-136), formats.TF32, away=True)
    assert np.isnan(formats.round_ties_away([np.nan], "tf32")[0])
    odd = [2.0**52 + 1, 2.0**53 - 1, -(2.0**52 + 1)]  # of full width
    assert formats.round_ties_away(odd, "float64").tolist() == odd


@given(pairs())
def test_truncation_goes_to_the_neighbour_that_is_nearer_to_zero(case: tuple) -> None:
    hi, _, scale, format = case
    value = math.ldexp(hi, max(min(scale, 900), -900) % 200)
    answer = float(formats.truncate_to([value], format)[0])
    exact, near = Fraction(abs(value)), rounded(Fraction(abs(value)), format)
    assert math.copysign(1.0, answer) == math.copysign(1.0, value)
    assert Fraction(abs(answer)) <= exact
    gap = Fraction(2) ** (max(int(formats.exponent_of(value, 0.0)), format.emin) - format.p + 1)
    assert exact - Fraction(abs(answer)) < gap or abs(answer) == format.max
    if near <= value < math.inf:
        assert abs(answer) == near


@pytest.mark.parametrize("format", [*STORED, formats.TF32], ids=str)
def test_truncation_keeps_specials_signs_and_what_the_format_holds(format: Format) -> None:
    values = [np.inf, -np.inf, np.nan, 0.0, -0.0, format.max, -format.min_subnormal]
    answers = formats.truncate_to(values, format).astype(np.float64)
    np.testing.assert_array_equal(answers, values)
    assert np.signbit(answers[4])
    assert np.signbit(formats.truncate_to([-format.min_subnormal / 2], format)[0]) or (
        format is formats.BINARY64
    )
    if format is not formats.BINARY64:
        assert float(formats.truncate_to([1e300], format)[0]) == format.max


@pytest.mark.parametrize("format", STORED[:2], ids=str)
def test_ordinals_of_every_16_bit_number_are_consecutive(format: Format) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(format.dtype)
    with np.errstate(invalid="ignore"):
        values = values[~np.isnan(values)]
    order = np.argsort(values.astype(np.float64), kind="stable")
    steps = np.diff(formats.ordinals(values[order]))
    assert steps.sum() == 2 * formats.ordinals(np.array([np.inf], format.dtype))[0]
    assert np.count_nonzero(steps == 0) == 1  # -0 and +0
    assert set(np.unique(steps)) == {0, 1}


@pytest.mark.parametrize("format", STORED, ids=str)
def test_ordinals_take_any_layout(format: Format) -> None:
    one = np.array([1.0], format.dtype)
    tiny = np.array([format.min_subnormal, -format.min_subnormal, -0.0, 0.0]).astype(format.dtype)
    assert formats.ordinals(tiny).tolist() == [1, -1, 0, 0]
    grid = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).astype(format.dtype)
    np.testing.assert_array_equal(formats.ordinals(grid.T), formats.ordinals(grid).T)
    np.testing.assert_array_equal(formats.ordinals(grid[:, ::2]), formats.ordinals(grid)[:, ::2])
    assert formats.ordinals(one.reshape(())).shape == ()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_a_nan_of_arithmetic_is_told_from_one_that_was_stored(name: str) -> None:
    """x86's and CUDA's, of the format and converted from narrower ones."""
    dtype = formats.get(name).storage
    bits = formats.get(name).bits_dtype
    largest = np.array(np.iinfo(bits).max >> 1, bits).reshape(1).view(dtype)
    given = np.array([np.nan, -np.nan, 1.0, np.inf], dtype)
    assert formats.computed_nans(given).tolist() == [True, True, False, False]
    assert formats.computed_nans(largest).all()
    half = np.array([0x7FFF, 0xFE00], np.uint16).view(np.float16)
    if name != "bfloat16":
        assert formats.computed_nans(half.astype(dtype)).all()
    stored = np.array(given[0]).reshape(1).view(bits) | bits.type(5)
    assert not formats.computed_nans(stored.view(dtype)).any()


FLOATS = (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4",
    "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float16",
)  # fmt: skip
EVERY = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float64)
FINITE = EVERY[np.isfinite(EVERY)]


@pytest.mark.parametrize("to", FLOATS)
def test_every_float16_and_its_neighbours_round_as_ml_dtypes_rounds_them(to: str) -> None:
    own, kind = grid(to), np.dtype(getattr(ml_dtypes, to, to))
    near = [np.nextafter(FINITE.astype("f4"), np.float32(end)) for end in (-np.inf, np.inf)]
    x = np.concatenate([FINITE.astype("f4"), *near])
    x = x[np.abs(x) <= own.largest]
    with np.errstate(all="ignore"):
        expected = x.astype(kind).astype(np.float64)
    rounded = own(x.astype(np.float64))
    assert np.array_equal(rounded, expected)
    assert np.array_equal(np.signbit(rounded), np.signbit(expected))
    assert len(np.unique(rounded)) == len(np.unique(expected)) > 8


@pytest.mark.parametrize("to", ["", "int8", "uint4", "float4_e2m1fn", "float8_e8m0fnu", "bfloat16"])
@pytest.mark.parametrize("ties", get_args(Ties))
def test_floats_and_fractions_round_alike_and_never_decrease(to: str, ties: Ties) -> None:
    own, rng = grid(to, ties), np.random.default_rng(5)
    x = np.sort([*FINITE[::97] / 8, *(rng.integers(-600, 600, 200) / 4), *rng.normal(0, 9, 200)])
    rounded = own(x)
    assert np.all(np.diff(rounded) >= 0)
    assert [Fraction(y) for y in rounded] == [own.of_rational(Fraction(z)) for z in x]
    inside = (rounded > own.least) & (rounded < own.largest)
    assert np.array_equal(own(rounded[inside]), rounded[inside])


@pytest.mark.parametrize("wrong", [("float9", "even"), ("int8", "odd"), ("complex64", "even")])
def test_other_names_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"is no format|must be one of"):
        grid(*wrong)
