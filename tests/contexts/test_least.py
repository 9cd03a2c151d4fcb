"""What is known of a bound without reading it is never more than what is read.

REFKERNELS_HUNT multiplies the number of attacks.
"""

import numpy as np
import pytest
from hunting import HUNT

from refkernels import registry
from refkernels.arithmetic import formats

OPS = [
    op for op in registry.ops().values() if op.inputs == ("x",) and op.formulas and not op.params
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", [op for op in OPS if op.elementwise], ids=lambda op: op.name)
def test_no_bound_is_below_the_rate_of_its_forms(op, dtype: str) -> None:
    """For inputs of any binade and sign, and of many at once, subnormal numbers among them."""
    format, rng, some = formats.get(dtype), np.random.default_rng(0), 0.0
    for attack in range(12 * HUNT):
        exponents = rng.integers(format.emin - format.p, format.emax, 1 + attack % 3)
        signs = rng.choice([-1.0, 1.0], exponents.size)
        x = rng.uniform(1.0, 2.0, (64, exponents.size)) * signs * 2.0**exponents
        x = formats.round_to(x[np.abs(x) < format.max].reshape(-1), format)
        x = x[np.abs(np.frexp(x)[0]) != 0.5]
        if not x.size:
            continue
        rate, floor = op.formulas.least((x.min(), x.max()), format)
        with np.errstate(all="ignore"):
            y = np.asarray(op.evaluate("forward", {"x": x}, {})["y"])
            bound = op.bound("forward", {"x": x}, {}, format)["y"]
        least = np.maximum(rate * np.abs(y), floor)
        assert not np.any(bound < least), (attack, x[bound < least][:3])
        some = max(some, rate)
    assert some > 0.0
