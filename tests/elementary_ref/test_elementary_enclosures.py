"""The hunt for an exact value outside its enclosure, forward and slopes, in every tier."""

import numpy as np
import pytest
from anchored import Exact

from refkernels.elementary_ref.functions import FUNCTIONS
from refkernels.elementwise import oracle
from refkernels.kernels.elementary.exponential import FARTHEST

BY_NAME = {function.name: function for function in FUNCTIONS}
ERROR_FUNCTIONS = ("erf", "erfc", "gelu", "gelu_tanh")
each = pytest.mark.parametrize("name", BY_NAME)
POWERS = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal")


def inside(name: str, x: float) -> bool:
    """Not beyond what a scale can tell, by the documented convention."""
    farthest = 1000.0 if name in ERROR_FUNCTIONS else FARTHEST / 2  # tanh takes twice its x
    return name in POWERS or abs(x) <= farthest


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


@pytest.mark.parametrize("name", sorted({*BY_NAME} - {*ERROR_FUNCTIONS}))
def test_double_doubles_are_as_tight_as_promised(name):
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.uniform(-30, 30, 4000), 2.0 ** rng.uniform(-100, 9, 4000)])
    for tier, promised in ((oracle.values, 2.0**-94), (oracle.slopes, 2.0**-88)):
        enclosure = tier(BY_NAME[name], x)
        defined = np.isfinite(enclosure.hi)
        if name == "silu" and tier is oracle.slopes:
            defined &= abs(x + 1.2784645427610738) > 1e-3
        width = enclosure.radius[defined] / np.abs(enclosure.hi[defined])
        assert width.max() <= promised
        assert defined.sum() > 5000
