"""The functions' promises besides values: specials, slopes there, plain algorithm, Op records."""

import numpy as np
import pytest

from refkernels import elementary_ref, trig_ref
from refkernels.elementary_ref.functions import FUNCTIONS
from refkernels.elementwise import oracle

BY_NAME = {function.name: function for function in FUNCTIONS}
OPS = {op.name: op for op in elementary_ref.OPS if op.name in BY_NAME}
TRIG = {function.name: function for function in trig_ref.functions.FUNCTIONS}
each = pytest.mark.parametrize("name", BY_NAME)
INF, NAN = np.inf, np.nan
# f at -inf, -1, -0, +0, inf
SPECIALS = {
    "exp": (0.0, None, 1.0, 1.0, INF),
    "exp2": (0.0, 0.5, 1.0, 1.0, INF),
    "expm1": (-1.0, None, -0.0, 0.0, INF),
    "log": (NAN, NAN, -INF, -INF, INF),
    "log2": (NAN, NAN, -INF, -INF, INF),
    "log10": (NAN, NAN, -INF, -INF, INF),
    "log1p": (NAN, -INF, -0.0, 0.0, INF),
    "sinh": (-INF, None, -0.0, 0.0, INF),
    "cosh": (INF, None, 1.0, 1.0, INF),
    "tanh": (-1.0, None, -0.0, 0.0, 1.0),
    "sigmoid": (0.0, None, 0.5, 0.5, 1.0),
    "silu": (-0.0, None, -0.0, 0.0, INF),
    "softplus": (0.0, None, None, None, INF),
    "sqrt": (NAN, NAN, -0.0, 0.0, INF),
    "rsqrt": (NAN, NAN, -INF, INF, 0.0),
    "reciprocal": (-0.0, -1.0, -INF, INF, 0.0),
    "erf": (-1.0, None, -0.0, 0.0, 1.0),
    "erfc": (2.0, None, 1.0, 1.0, 0.0),
    "gelu": (-0.0, None, -0.0, 0.0, INF),
    "gelu_tanh": (-0.0, None, -0.0, 0.0, INF),
    "sin": (NAN, None, -0.0, 0.0, NAN),
    "cos": (NAN, None, 1.0, 1.0, NAN),
    "tan": (NAN, None, -0.0, 0.0, NAN),
    "asin": (NAN, None, -0.0, 0.0, NAN),
    "acos": (NAN, None, None, None, NAN),
    "atan": (None, None, -0.0, 0.0, None),
    "sinpi": (NAN, -0.0, -0.0, 0.0, NAN),
    "cospi": (NAN, -1.0, 1.0, 1.0, NAN),
}
SLOPES = {
    "exp": (0.0, None, 1.0, 1.0, INF),
    "exp2": (0.0, None, None, None, INF),
    "expm1": (0.0, None, 1.0, 1.0, INF),
    "log": (NAN, NAN, -INF, INF, 0.0),
    "log2": (NAN, NAN, -INF, INF, 0.0),
    "log10": (NAN, NAN, -INF, INF, 0.0),
    "log1p": (NAN, INF, 1.0, 1.0, 0.0),
    "sinh": (INF, None, 1.0, 1.0, INF),
    "cosh": (-INF, None, -0.0, 0.0, INF),
    "tanh": (0.0, None, 1.0, 1.0, 0.0),
    "sigmoid": (0.0, None, 0.25, 0.25, 0.0),
    "silu": (-0.0, None, 0.5, 0.5, 1.0),
    "softplus": (0.0, None, 0.5, 0.5, 1.0),
    "sqrt": (NAN, NAN, -INF, INF, 0.0),
    "rsqrt": (NAN, NAN, INF, -INF, -0.0),
    "reciprocal": (-0.0, -1.0, -INF, -INF, -0.0),
    "erf": (0.0, None, None, None, 0.0),
    "erfc": (-0.0, None, None, None, -0.0),
    "gelu": (-0.0, None, 0.5, 0.5, 1.0),
    "gelu_tanh": (-0.0, None, 0.5, 0.5, 1.0),
    "sin": (NAN, None, 1.0, 1.0, NAN),
    "cos": (NAN, None, 0.0, -0.0, NAN),
    "tan": (NAN, None, 1.0, 1.0, NAN),
    "asin": (NAN, INF, 1.0, 1.0, NAN),
    "acos": (NAN, -INF, -1.0, -1.0, NAN),
    "atan": (0.0, 0.5, 1.0, 1.0, 0.0),
    "sinpi": (NAN, None, None, None, NAN),
    "cospi": (NAN, None, 0.0, -0.0, NAN),
}


def assert_exact(enclosure, expected) -> None:
    wanted = np.array([value is not None for value in expected])
    values = np.array([np.nan if value is None else value for value in expected])
    np.testing.assert_array_equal(enclosure.hi[wanted], values[wanted])
    signed = wanted & ~np.isnan(values)
    np.testing.assert_array_equal(np.signbit(enclosure.hi[signed]), np.signbit(values[signed]))
    assert (enclosure.radius[wanted] == 0.0).all()
    assert signed.sum() + np.isnan(values).sum() == 5


@pytest.mark.parametrize("name", SPECIALS)
def test_special_values_are_the_limits(name):
    x, function = np.array([-INF, -1.0, -0.0, 0.0, INF]), {**BY_NAME, **TRIG}[name]
    assert_exact(oracle.values(function, x), SPECIALS[name])
    assert_exact(oracle.slopes(function, x), SLOPES[name])
    narrow = oracle.forward(function, np.float32([*x, NAN]))
    special = [i for i, v in enumerate(SPECIALS[name]) if v is not None and not 0 < abs(v) < INF]
    np.testing.assert_array_equal(narrow.hi[special], np.array(SPECIALS[name], float)[special])
    assert np.isnan(narrow.hi[-1])
    assert np.isnan(oracle.slopes(function, np.array([NAN])).hi[0])


@pytest.mark.parametrize("name", SPECIALS)
def test_gradients_at_special_points_are_ieee_products(name):
    x, function = np.array([-INF, -1.0, -0.0, 0.0, INF]), {**BY_NAME, **TRIG}[name]
    for dy in (0.0, -0.0, INF, -INF, NAN):
        gradient = oracle.backward(function, np.full(5, dy), x).hi
        slopes = np.array([np.nan if s is None else s for s in SLOPES[name]], float)
        defined = np.array([s is not None for s in SLOPES[name]])
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(gradient[defined], (dy * slopes)[defined])


@each
def test_plain_specials_are_those_of_the_oracle(name):
    x = np.array([-INF, -0.0, 0.0, INF, NAN])
    for dtype in ("float32", "float64"):
        got = elementary_ref.forward_plain(name, x.astype(dtype), format=dtype)
        expected = OPS[name].forward(x).hi
        unexact = np.isfinite(expected) & (np.abs(expected) > 0)
        np.testing.assert_array_equal(got[~unexact], expected[~unexact])
        np.testing.assert_allclose(got[unexact], expected[unexact], rtol=2.0**-20)


@each
def test_conditions_are_those_of_the_definition(name):
    rng = np.random.default_rng(3)
    x = rng.uniform(0.01, 5, 300)
    if name not in ("log", "log2", "log10", "sqrt", "rsqrt", "log1p"):
        x = np.concatenate([x, -x])
    function = BY_NAME[name]
    value, slope = oracle.values(function, x).hi, oracle.slopes(function, x).hi
    expected = np.abs(x * slope / value)
    np.testing.assert_allclose(elementary_ref.forward_condition(name, x), expected, rtol=1e-9)
    step = 2.0**-20
    around = [oracle.slopes(function, x * (1 + s)).hi for s in (-step, step)]
    second = np.abs((around[1] - around[0]) / (2 * step * slope))
    got = elementary_ref.backward_condition(name, np.ones_like(x), x)
    np.testing.assert_allclose(got, second, rtol=1e-4, atol=1e-6)


def test_planted_faults_violate_the_invariants():
    x = np.linspace(-3, 3, 101).astype(np.float32)
    planted = {
        ("exp", "range"): -np.exp(x),
        ("exp", "rising"): np.where(x == x[60], 0.5, np.exp(x)),
        ("tanh", "range"): np.tanh(x) * np.float32(1.2),
        ("tanh", "sign"): -np.tanh(x),
        ("expm1", "at_least_x"): x - 1,
        ("log1p", "at_most_x"): x + 1,
        ("softplus", "at_least_x"): x - 1,
        ("sigmoid", "range"): 2 * np.ones_like(x),
        ("silu", "sign"): -x,
        ("erf", "range"): x + 1,
        ("gelu", "at_most_x"): 2 * x,
    }
    for (name, which), got in planted.items():
        (invariant,) = [i for i in OPS[name].invariants if i.name == which]
        assert invariant.violated(got.astype(np.float32), {"x": x}, {}).any(), (name, which)


def test_a_fall_of_one_ulp_is_no_violation_and_one_of_two_is():
    x = np.float32([3, 1, 2])
    (rising,) = [i for i in OPS["exp"].invariants if i.name == "rising"]
    one = np.float32([5, 5, np.nextafter(np.float32(5), np.float32(0))])
    assert not rising.violated(one, {"x": x}, {}).any()
    two = np.nextafter(one, np.float32(0), where=[False, False, True], out=one.copy())
    assert rising.violated(two, {"x": x}, {}).tolist() == [False, False, True]
