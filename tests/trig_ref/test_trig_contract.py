"""The public functions' promises besides values: specials, shapes, errors, the Op."""

import numpy as np

from refkernels import trig_ref
from refkernels.trig_ref import OPS

NAMES = ("sin", "cos", "tan")


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
