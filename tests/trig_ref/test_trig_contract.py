"""The public functions' promises besides values: specials, shapes, errors, the Op."""

import numpy as np
import pytest

from refkernels import trig_ref
from refkernels.arithmetic import formats
from refkernels.trig_ref import OPS

NAMES = ("sin", "cos", "tan")
FUNCTIONS = {op.name: op.forward for op in OPS}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_zeros_are_exact_and_signed(dtype):
    zeros = formats.round_to([0.0, -0.0], dtype)
    for name in ("sin", "tan"):
        enclosure = FUNCTIONS[name](zeros)
        assert enclosure.exact_zero.all()
        assert np.signbit(enclosure.hi).tolist() == [False, True]
    one = trig_ref.cos(zeros)
    assert one.hi.tolist() == [1.0, 1.0]
    assert (one.radius == 0.0).all() or (dtype != "float64" and (one.radius <= 2.0**-49).all())


@pytest.mark.parametrize("name", [*NAMES, "asin", "acos", "sinpi", "cospi"])
def test_infinities_and_nan_give_nan(name):
    enclosure = FUNCTIONS[name](np.array([np.inf, -np.inf, np.nan], np.float32))
    assert np.isnan(enclosure.hi).all()
    assert (enclosure.radius == 0.0).all()


def test_gradients_at_special_points_are_ieee_products():
    dy = np.array([0.0, -0.0, np.inf, np.inf, -np.inf, 1.0, np.nan, 2.0, 0.0, -0.0])
    x = np.array([1.0, 1.0, 2.0, 0.0, 1.0, np.inf, 1.0, 0.0, 2.0, 0.0])
    for name, slope in (("sin", np.cos), ("cos", lambda v: -np.sin(v)), ("tan", None)):
        enclosure = trig_ref.backward(name, dy, x)
        with np.errstate(invalid="ignore"):
            product = dy * (1 + np.tan(x) ** 2 if slope is None else slope(x))
        assert np.isnan(product).any()
        special = ~np.isfinite(product) | (product == 0.0)
        np.testing.assert_array_equal(enclosure.hi[special], product[special])
        signs = ~np.isnan(product) & special
        np.testing.assert_array_equal(np.signbit(enclosure.hi[signs]), np.signbit(product[signs]))
        assert (enclosure.radius[special] == 0.0).all()


def test_gradients_beyond_float64_are_scaled_not_lost():
    x = np.array([float.fromhex("0x1.6ac5b262ca1ffp+849"), 2.0**-1074])
    huge = trig_ref.backward("tan", np.array([1e308, 1.0]), x)
    assert huge.lower_upper(0)[0] > 10**340
    assert np.asarray(huge)[0] == np.inf
    small = trig_ref.backward("cos", np.array([2.0**-1074, 2.0**-1074]), x)
    assert 0 > small.lower_upper(1)[1] > small.lower_upper(1)[0]
    assert np.asarray(small)[1] == 0.0


def test_invariants_catch_the_seeds_cosine_of_minus_one_and_a_bit():
    invariant = next(i for i in OPS[1].invariants if i.name == "at_most_one")
    got = np.array([-1.000004, -1.0], np.float32)
    pi = {"x": np.full(2, np.pi, np.float32)}
    assert invariant.violated(got, pi, {}).tolist() == [True, False]


def test_condition_numbers_are_the_textbooks():
    x = np.array([1e-8, 1.0, 3.0])
    sin, cos, tan = (trig_ref.forward_condition(name, x) for name in NAMES)
    eight_roundings = 2.0**-50
    np.testing.assert_allclose(sin, np.abs(x / np.tan(x)), rtol=eight_roundings)
    np.testing.assert_allclose(cos, np.abs(x * np.tan(x)), rtol=eight_roundings)
    np.testing.assert_allclose(tan, np.abs(2 * x / np.sin(2 * x)), rtol=eight_roundings)
    at_zero = {op.name: float(op.forward_condition(np.zeros(1))[0]) for op in OPS}
    ones = dict.fromkeys(("sin", "tan", "asin", "atan", "sinpi"), 1.0)
    assert at_zero == {**ones, "cos": 0.0, "acos": 0.0, "cospi": 0.0}
