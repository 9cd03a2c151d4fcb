"""The hunt for an exact value outside its enclosure, forward and slopes, in every tier."""

import elementary_truth as truth
import numpy as np
import pytest
from anchored import Exact
from hunting import HUNT
from hypothesis import given, settings
from hypothesis import strategies as st

from refkernels import elementary_ref
from refkernels.arithmetic import tiers
from refkernels.elementary_ref.functions import FUNCTIONS
from refkernels.elementwise import oracle
from refkernels.kernels.elementary.exponential import FARTHEST

BY_NAME = {function.name: function for function in FUNCTIONS}
each = pytest.mark.parametrize("name", BY_NAME)
POWERS = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal")
# Where kernels change their ways, and the functions theirs.
PLACES = (
    *(2.0**-54, 2.0**-27, 2.0**-480, 2.0**-200, 2.0**-1022, 2.0**-1074, 1.7976931348623157e308),
    *(0.005, 0.0054, 1 / 128, 38.8, 39.0, 40.0, 76.2, 150.0, 700.0, 709.78, 745.13, 1400.0),
    *(2.0**20, 2.0**29, 1.0, 0.5, 0.7071067811865476, 2.0, 10.0, 1023.0, 1.2784645427610738),
)


def near(place: float) -> st.SearchStrategy[float]:
    steps = st.integers(-4, 4) | st.integers(-(2**40), 2**40)
    return st.builds(
        lambda sign, step: (
            sign * float(np.int64(np.float64(place).view(np.int64) + step).view("f8"))
        ),
        st.sampled_from([-1.0, 1.0]),
        steps,
    )


arguments = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-50, 50),
    st.floats(-1, 1),
    st.sampled_from(PLACES).flatmap(near),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(-1100, 1100).map(float),
).filter(np.isfinite)


def inside(name: str, x: float) -> bool:
    """Not beyond what a scale can tell, by the documented convention."""
    farthest = 1000.0 if name in truth.ERROR_FUNCTIONS else FARTHEST / 2  # tanh takes twice its x
    return name in POWERS or abs(x) <= farthest


@each
@settings(max_examples=40 * HUNT)
@given(x=arguments)
def test_no_value_and_no_slope_escapes(name, x):
    function = BY_NAME[name]
    array = np.array([x])
    for tier, dy in ((oracle.values, None), (oracle.slopes, 1.0)):
        enclosure = tier(function, array)
        assert enclosure.hi[0] == enclosure.hi[0] + enclosure.lo[0] or np.isnan(enclosure.hi[0])
        if np.isfinite(enclosure.hi[0]) and inside(name, x):
            assert Exact(name, x, dy).escape(enclosure) <= 1.0


@each
def test_no_value_and_no_slope_escapes_at_thousands_of_places(name):
    rng = np.random.default_rng(5)
    small = 2.0 ** rng.uniform(-60, 10, 250)
    zero = 1.2784645427610738 * (1 + 2.0 ** rng.uniform(-53, -3, 40))
    near_one = 1 + 2.0 ** rng.uniform(-53, -3, 100) * rng.choice([-1, 1], 100)
    x = np.concatenate(
        [small, rng.uniform(0, 45, 100), zero, near_one, 4.0 ** np.arange(-20.0, 14.0)]
    )
    x = np.array([v for v in np.concatenate([x, -x]) if inside(name, v)])
    checked = 0
    for tier, dy in ((oracle.values, None), (oracle.slopes, 1.0)):
        enclosure = tier(BY_NAME[name], x)
        for i in np.flatnonzero(np.isfinite(enclosure.hi)):
            assert Exact(name, float(x[i]), dy).escape(enclosure, i) <= 1.0, float(x[i]).hex()
            checked += 1
    assert checked > 900


@each
@settings(max_examples=15 * HUNT)
@given(x=arguments, dy=arguments)
def test_no_gradient_escapes_whatever_the_question(name, x, dy):
    for certify in ("enclosure", ("rounding", "float64"), ("ulp", "float64", 1e-40)):
        gradient = elementary_ref.backward(name, np.array([dy]), np.array([x]), certify=certify)
        if np.isfinite(gradient.hi[0]) and gradient.hi[0] != 0.0 and inside(name, x):
            assert Exact(name, x, dy).escape(gradient) <= 1.0


@pytest.mark.parametrize("name", sorted({*BY_NAME} - {*truth.ERROR_FUNCTIONS}))
def test_double_doubles_are_as_tight_as_promised(name):
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.uniform(-30, 30, 4000), 2.0 ** rng.uniform(-100, 9, 4000)])
    for tier in (oracle.values, oracle.slopes):
        enclosure = tier(BY_NAME[name], x)
        defined = np.isfinite(enclosure.hi)
        if name == "silu" and tier is oracle.slopes:
            defined &= abs(x + 1.2784645427610738) > 1e-3
        width = enclosure.radius[defined] / np.abs(enclosure.hi[defined])
        assert width.max() <= 2.0**-94
        assert defined.sum() > 5000


@each
def test_the_tiers_agree(name):
    rng = np.random.default_rng(7)
    x = rng.uniform(-8, 8, 400).astype(np.float32)
    first = BY_NAME[name]
    with tiers.counted() as tally:
        fast = oracle.forward(first, x)
    assert tally == {"float64": x.size}
    middle = oracle.forward(first, x.astype(np.float64))
    exact = oracle.forward(first, x, ("ulp", "float64", 1e-40))
    finite = np.isfinite(fast.hi)
    for left, right in ((fast, middle), (middle, exact), (fast, exact)):
        np.testing.assert_array_equal(np.isnan(left.hi), np.isnan(right.hi))
        gap = np.abs((left.hi - right.hi) + (left.lo - right.lo))[finite]
        slack = 2.0**-104 * np.abs(left.hi[finite])  # of computing the gap itself
        assert (gap <= left.radius[finite] + right.radius[finite] + slack).all()


@pytest.mark.parametrize("name", ["exp", "exp2", "sinh", "cosh", "sigmoid", "softplus", "silu"])
def test_arguments_beyond_every_scale_are_rounded_rightly(name):
    x = np.array([1e300, -1e300, 2.0**30, -(2.0**30)])
    values, certified = getattr(elementary_ref, name)(x, certify=("rounding", "float64")).round(
        "float64"
    )
    assert certified.all()
    with np.errstate(over="ignore"):
        expected = {
            "sinh": np.sinh(x),
            "cosh": np.cosh(x),
            "sigmoid": np.float64([1, 0, 1, 0]),
            "softplus": np.maximum(x, 0),
            "silu": np.maximum(x, -0.0),
        }.get(name, np.exp(x))
    np.testing.assert_array_equal(values, expected)
