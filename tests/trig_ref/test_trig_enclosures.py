"""The hunt for an exact value outside its enclosure, over the bits of every float64."""

import math

import numpy as np
import pytest
from anchored import Exact, worst_escape
from hypothesis import given
from hypothesis import strategies as st

from refkernels import trig_ref
from refkernels.arithmetic import formats
from refkernels.arithmetic.double_double import U
from refkernels.kernels.trigonometric import values as kernels
from refkernels.trig_ref import points

FUNCTIONS = {op.name: op.forward for op in trig_ref.OPS}
NAMES = ("sin", "cos", "tan")
names = st.sampled_from(NAMES)


def random_bits(n: int, seed: int) -> np.ndarray:
    bits = np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)
    values = bits.view(np.float64)
    return values[np.isfinite(values)]


@given(names, st.integers(1, 2**1000), st.integers(-3, 3))
def test_no_value_escapes_next_to_multiples_of_half_pi(name, k, steps):
    x = float(points.multiples([k % int(1.1e308)])[0])
    for _ in range(abs(steps)):
        x = math.nextafter(x, math.copysign(math.inf, steps))
    enclosure = FUNCTIONS[name](np.array([x]))
    assert Exact(name, x).escape(enclosure) <= 1.0


@pytest.mark.parametrize("name", NAMES)
def test_values_of_random_bits_use_at_most_half_of_the_radius_where_it_is_a_budget(name):
    x = np.concatenate([random_bits(3000, 1), np.random.default_rng(2).uniform(-800, 800, 3000)])
    x = x[np.abs(x) >= kernels.TINY]
    worst = worst_escape(name, x, FUNCTIONS[name](x))
    assert 0.02 < worst < 0.5


@pytest.mark.parametrize("name", NAMES)
def test_the_nearest_floats_to_multiples_of_half_pi_are_enclosed_as_sharply(name):
    for format in (formats.BINARY64, formats.BINARY32):
        x = points.hardest(format)
        assert x.size > 100
        enclosure = FUNCTIONS[name](x)
        assert worst_escape(name, x, enclosure) < 0.5
        assert (enclosure.radius <= 2.0**-100 * np.abs(enclosure.hi)).all()


@pytest.mark.parametrize("name", NAMES)
def test_enclosures_are_narrower_than_the_budget_says(name):
    x = random_bits(20_000, 4)
    allowed = kernels.TAN_ERROR if name == "tan" else kernels.ERROR
    enclosure = FUNCTIONS[name](x)
    assert (enclosure.radius <= allowed * np.abs(enclosure.hi)).all()
    # |hi| < 2^53 ulp, and the smaller ulp at a power of two doubles that
    assert enclosure.uncertainty("float64").max() <= 2.0**54 * allowed < 2.0**-46
    dy = random_bits(20_000, 5)[: x.size]
    backward = trig_ref.backward(name, dy, x[: dy.size])
    assert backward.uncertainty("float64").max() <= 2.0**-10


def test_no_float64_comes_nearer_to_a_multiple_of_half_pi_than_2_to_minus_62_quadrants():
    distances = [abs(points.distance(x)) for x in points.hardest(formats.BINARY64)]
    assert 2.0**-62 < min(distances) < 2.0**-61
    known = 6381956970095103 * 2.0**797  # Muller, Elementary Functions, table 11.1
    assert abs(points.distance(known)) == min(distances)


def test_the_error_constants_cover_the_sums_in_the_budget():
    assert kernels.ERROR >= 25.2 * U**2
    assert kernels.TAN_ERROR >= 46.1 * U**2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("power", [-26, -100, -251, -600, -990, -1074])
def test_gradients_a_hair_beside_midpoints_are_right(name, power):
    """dy at midpoints of float32 times a slope of 1 ± x^2 (for cos, x): 2^-2149 beside them."""
    target = formats.BINARY32
    x = np.full(4, 2.0**power)
    lift = min(-power, 1000) if name == "cos" else 0
    ties = np.array([1 + 2.0**-24, 1 + 3 * 2.0**-24, -(1 + 2.0**-24), -(1 + 3 * 2.0**-24)])
    dx = trig_ref.backward(name, np.ldexp(ties, lift), x, certify=("rounding", target))
    value, certified = dx.round(target)
    up = 1 if name == "tan" else 0
    sizes = np.array([1 + up * 2.0**-23, 1 + (1 + up) * 2.0**-23] * 2) * 2.0 ** (
        power * (name == "cos") + lift
    )
    expected = sizes * np.sign(ties) * (-1.0 if name == "cos" else 1.0)
    assert certified.all() or power < -1000
    assert np.array_equal(value[certified], formats.round_to(expected, target)[certified])
    for i, (dy, a) in enumerate(zip(np.ldexp(ties, lift), x, strict=True)):
        assert Exact(name, float(a), float(dy)).escape(dx, i) <= 1.0
