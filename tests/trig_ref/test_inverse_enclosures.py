"""The hunt for an exact value outside its enclosure: asin, acos, atan, sinpi and cospi."""

import math

import numpy as np
import pytest
from anchored import Exact, worst_escape
from hypothesis import example, given
from hypothesis import strategies as st

from refkernels import trig_ref
from refkernels.arithmetic.double_double import U
from refkernels.kernels.trigonometric import inverse, turns
from refkernels.kernels.trigonometric import values as kernels

FUNCTIONS = {op.name: op.forward for op in trig_ref.OPS}
NAMES = ("asin", "acos", "atan", "sinpi", "cospi")
names = st.sampled_from(NAMES)
every_float64 = st.floats(allow_nan=False, allow_infinity=False)
unit = st.floats(-1.0, 1.0)
beside_one = st.integers(0, 2**54).map(lambda k: 1.0 - k * 2.0**-54)
halves = st.builds(lambda k, s: math.ldexp(k, -2) * (1 + s * 2.0**-52), st.integers(-99, 99), unit)
small = st.builds(math.ldexp, unit, st.integers(-1074, -20))
float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)
arguments = st.one_of(every_float64, unit, beside_one, halves, small, float32s)


def inside(name: str, x: float) -> bool:
    return abs(x) <= 1.0 if name in ("asin", "acos") else True


@given(names, arguments)
@example("atan", 2.0**120)
@example("atan", 1.0 / 256)
@example("acos", -(2.0**-28))
@example("cospi", 2.0**-600)
@example("sinpi", 2.0**53 - 0.5)
def test_no_value_escapes(name, x):
    enclosure = FUNCTIONS[name](np.array([x]))
    if inside(name, x):
        assert Exact(name, x).escape(enclosure) <= 1.0
    else:
        assert math.isnan(enclosure.hi[0])


@given(names, every_float64, arguments)
@example("atan", 3.0, 2.0**600)
@example("atan", 3.0, 1.0)
def test_no_gradient_escapes(name, dy, x):
    enclosure = trig_ref.backward(name, np.array([dy]), np.array([x]))
    if not inside(name, x) or (abs(x) == 1.0 and dy == 0.0 and name in ("asin", "acos")):
        assert math.isnan(enclosure.hi[0])
    elif abs(x) == 1.0 and name in ("asin", "acos"):
        assert enclosure.hi[0] == (1 if name == "asin" else -1) * math.copysign(math.inf, dy)
    else:
        assert Exact(name, x, dy).escape(enclosure) <= 1.0


@given(names, arguments)
def test_no_narrow_value_escapes(name, x):
    with np.errstate(over="ignore"):
        narrow = np.array([x], np.float32)
    if not np.isfinite(narrow[0]) or not inside(name, float(narrow[0])):
        return
    truth = Exact(name, float(narrow[0]))
    for certify in ("enclosure", ("rounding", "float32"), ("ulp", "float64", 2.0**-50)):
        assert truth.escape(FUNCTIONS[name](narrow, certify=certify)) <= 1.0


@pytest.mark.parametrize("name", NAMES)
def test_the_radius_is_the_budgets_and_at_most_half_of_it_is_used(name):
    rng = np.random.default_rng(21)
    near_one = rng.choice([-1.0, 1.0], 300) * (1 - 2.0**-50 - rng.random(300) ** 9 / 2)
    x = np.concatenate([rng.uniform(-1, 1, 700), near_one])
    x = x[np.abs(x) >= kernels.TINY] * (1.0 if name in ("asin", "acos") else 37.0)
    allowed = inverse.ERROR if name in inverse.CODES else kernels.ERROR
    enclosure = FUNCTIONS[name](x)
    assert (enclosure.radius <= allowed * np.abs(enclosure.hi)).all()
    assert 0.005 < worst_escape(name, x, enclosure) < 0.5
    slopes = trig_ref.backward(name, np.ones(x.size), x)
    assert (slopes.radius <= (turns.SLOPE_ERROR + 4 * U**2) * np.abs(slopes.hi)).all()
    assert worst_escape(name, x, slopes, 1.0) < 0.5


def test_multiples_of_one_half_are_exact_with_the_signs_of_ieee_754():
    x = np.array([0.0, 1.0, 2.0, 2.0**60, 0.5, 1.5, 2.5, 3.5])
    x = np.concatenate([x, -x])
    for dtype in (np.float32, np.float64):
        sine, cosine = trig_ref.sinpi(x.astype(dtype)), trig_ref.cospi(x.astype(dtype))
        np.testing.assert_array_equal(sine.hi[:8], [0.0, 0.0, 0.0, 0.0, 1.0, -1.0, 1.0, -1.0])
        np.testing.assert_array_equal(np.signbit(sine.hi[:4]), False)
        np.testing.assert_array_equal(np.signbit(sine.hi[8:12]), True)
        np.testing.assert_array_equal(np.abs(sine.hi), np.abs(np.roll(sine.hi, 8)))
        np.testing.assert_array_equal(cosine.hi, [1.0, -1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0] * 2)
        assert not np.signbit(cosine.hi[cosine.hi == 0.0]).any()
        assert sine.exact_zero.sum() == cosine.exact_zero.sum() == 8


def test_slopes_at_special_points():
    inf, nan = np.inf, np.nan
    for name, x, slope in (
        ("asin", [1.0, -1.0, 0.0, 1.5, inf, nan], [inf, inf, 1.0, nan, nan, nan]),
        ("acos", [1.0, -1.0, 0.0, 1.5, inf, nan], [-inf, -inf, -1.0, nan, nan, nan]),
        ("atan", [1.0, -1.0, 0.0, inf, -inf, nan], [0.5, 0.5, 1.0, 0.0, 0.0, nan]),
        ("sinpi", [0.5, 1.5, inf, nan], [0.0, 0.0, nan, nan]),
        ("cospi", [0.0, 1.0, 3.0, inf], [-0.0, -0.0, -0.0, nan]),
    ):
        dx = trig_ref.backward(name, np.ones(len(x)), np.array(x))
        np.testing.assert_array_equal(dx.hi, slope)
        assert (dx.radius == 0.0).all()


@pytest.mark.parametrize("power", [0, -1, 3, 30, 400])
def test_gradients_of_atan_on_rounding_boundaries_are_certified(power):
    """dy = (1 + x^2) (1 + 2^-24) 2^power: dx is a midpoint of float32, exactly."""
    x = np.array([2.0, 0.5, 3.0, 2.0**10])
    dy = (1.0 + x * x) * (1.0 + 2.0**-24) * 2.0**power
    dx = trig_ref.backward("atan", dy, x, certify=("rounding", "float32"))
    values, certified = dx.round("float32")
    assert certified.all()
    with np.errstate(over="ignore"):
        expected = np.full(4, 2.0**power if power < 128 else np.inf, np.float32)
    np.testing.assert_array_equal(values, expected)


def test_every_subnormal_float32_is_decided_without_multiple_precision():
    from refkernels.arithmetic import tiers

    bits = np.random.default_rng(22).integers(1, 1 << 23, 20_000, dtype=np.uint32)
    x = np.concatenate([bits.view(np.float32), -bits.view(np.float32)])
    for op in trig_ref.OPS:
        with tiers.counted() as tally:
            assert op.forward(x, certify=("rounding", "float32")).round("float32")[1].all()
        assert sum(tally.values()) == x.size
        assert "exact" not in tally
