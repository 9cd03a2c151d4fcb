"""No kernel leaves the values that `Reachable` gives, whatever overflows or underflows on its way.

REFKERNELS_HUNT multiplies the number of formulas and arguments.
"""

from typing import Any

import flint
import numpy as np
import pytest
from context_kernels import Kernel, delivered, inputs_of_rules, kernels
from context_rules import RULES
from hunting import HUNT
from test_bound import ARITHMETICS, dtype_of
from test_random_formulas import SHAPE, formula

from refkernels.arithmetic import formats
from refkernels.contexts import Arb
from refkernels.contexts.reachable import Reachable

SCALES = (1e-45, 1e-24, 1e-12, 1e-5, 1e-2, 1e2, 1e5, 1e12, 1e19, 1e30, 1e38)


class Library(Kernel):
    """A kernel whose functions are off by some ulp, but not negative where no value is."""

    def function(self, name: str, a: Any) -> Any:
        value = super().function(name, a)
        return self.absolute(value) if name in ("exp", "rsqrt") else value


def missed(got: Any, truth: Any, reading: Reachable, value: Any) -> list[int]:
    """The places of answers that are neither near the truth nor among what leaves the range."""
    bound = reading.bound(value) + reading.delivered.format.min_subnormal / 2.0
    low, high, nan = (np.broadcast_to(part, got.shape) for part in reading.ends(value))
    places = []
    for i, (number, z, r) in enumerate(zip(got.flat, truth.data.flat, bound.flat, strict=True)):
        answer = float(number)
        if not np.isfinite(r) or low.flat[i] <= answer <= high.flat[i]:
            continue
        if np.isnan(answer):
            near = bool(nan.flat[i])
        else:
            near = np.isfinite(answer) and not abs(flint.arb(answer) - z) > flint.arb(float(r))
        places += [] if near else [i]
    return places


@pytest.mark.parametrize(("working", "storage"), ARITHMETICS[:3] + ARITHMETICS[4:], ids=str)
def test_no_kernel_of_a_random_formula_leaves_what_is_reachable(
    working: str, storage: str | None
) -> None:
    beyond = 0
    for seed in range(12 * HUNT):
        rng = np.random.default_rng([seed, 2])
        sizes = 10.0 ** rng.normal(0, 1, (2, *SHAPE)) * rng.choice(SCALES, (2, 1, 1))
        with np.errstate(over="ignore"):
            x, y = (rng.choice([-1, 1], sizes.shape) * sizes).astype(dtype_of(storage or working))
        x, y = (np.where(np.isfinite(part), part, part.dtype.type(1)) for part in (x, y))
        reading = Reachable(working, storage)
        value = formula(seed)(reading, reading.array(x), reading.array(y))
        with Arb(600) as arb:
            truth = formula(seed)(arb, arb.array(x), arb.array(y))
            for option in kernels(working, storage, False, reading.limit)[seed % 2 :: 2]:
                kernel = Library(**{"format": working, **option})
                got = formula(seed)(kernel, kernel.array(x), kernel.array(y))
                answer = delivered(got, working, storage)
                assert missed(answer, truth, reading, value) == [], (seed, option)
        beyond += int(np.count_nonzero(~np.isnan(np.minimum(*reading.ends(value)[:2]))))
    assert beyond > 0


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", RULES)
def test_no_kernel_of_a_primitive_leaves_what_is_reachable(name: str, format: str) -> None:
    """Of arguments that have left the range themselves: their squares, and products of these."""
    rng = np.random.default_rng(sum(map(ord, name + format)))
    for _ in range(4 * HUNT):
        (x, *_), _ = inputs_of_rules(rng, format, (2, 3))
        x = np.abs(x) if name in ("log", "sqrt", "rsqrt", "real_power") else x

        def rule(xp: Any, a: Any) -> Any:
            squares = xp.square(a) * xp.number(0.75)
            return RULES[name](xp, squares if name != "exp" else -squares)

        reading = Reachable(format)
        value = rule(reading, reading.array(x))
        with Arb(700) as arb:
            truth = rule(arb, arb.array(x))
            for option in kernels(format, None, False, reading.limit):
                kernel = Library(**{"format": format, **option})
                answer = delivered(rule(kernel, kernel.array(x)), format)
                assert missed(answer, truth, reading, value) == [], (option, x)


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32"])
def test_what_surely_leaves_the_range_is_one_value(format: str) -> None:
    """The root of the sum of squares of huge numbers is infinite, and nothing between."""
    huge = 2.0 ** (formats.get(format).emax * 3 // 4)
    reading = Reachable(format)
    x = reading.array(np.full((1, 4), huge))
    low, high, nan = reading.ends(reading.norm(x))
    assert (low == np.inf).all()
    assert (high == np.inf).all()
    assert not nan.any()
    low, high, nan = reading.ends(x * reading.rsqrt(reading.mean(reading.square(x))))
    assert (np.abs(low) <= 8 * formats.get(format).min_subnormal * huge).all()
    assert (np.abs(high) <= 8 * formats.get(format).min_subnormal * huge).all()
    assert not nan.any()
