"""The hunt for an exact value outside its enclosure: asin, acos, atan, sinpi and cospi."""

import numpy as np
import pytest
from anchored import worst_escape

from refkernels import trig_ref
from refkernels.kernels.trigonometric import inverse
from refkernels.kernels.trigonometric import values as kernels

FUNCTIONS = {op.name: op.forward for op in trig_ref.OPS}
NAMES = ("asin", "acos", "atan", "sinpi", "cospi")


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
    assert (slopes.radius <= 2.0**-90 * np.abs(slopes.hi)).all()
    assert worst_escape(name, x, slopes, 1.0) <= 1.0
    x = np.append(x, [1e5, 1.5 * 2.0**20]) if allowed == kernels.ERROR else x
    slopes = trig_ref.backward(name, np.ones(x.size, np.float32), x.astype(np.float32))
    assert (slopes.radius <= 2.0**-46 * np.abs(slopes.hi)).all()


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
