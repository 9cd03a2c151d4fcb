"""Formulas drawn at random: Arb lies in Ball and DoubleDouble, and no kernel exceeds the bound.

REFKERNELS_HUNT multiplies the number of formulas.
"""

from typing import Any

import flint
import numpy as np
import pytest
from context_kernels import delivered, exceeds, kernel_of, kernels
from context_rules import outside, outside_double_double
from hunting import HUNT
from test_bound import ARITHMETICS, dtype_of

from refkernels.contexts import Arb, Ball, CommonErrors, DoubleDouble
from refkernels.contexts.context import FUNCTIONS
from refkernels.contexts.signs import Signs

SHAPE = (3, 4)


def formula(seed: int) -> Any:
    """A dozen random operations on two arrays and a few params, without sharp edges: arguments of
    logarithms and roots are sums of squares, and divisors at least one half."""

    def read(xp: Any, x: Any, y: Any) -> Any:
        rng = np.random.default_rng(seed)
        params = [0.1, 1e-5, 3, 0.5, -0.7, 1 / 3]
        values = [x, y, x * xp.number(params[rng.integers(len(params))])]

        def pick() -> Any:
            return values[rng.integers(len(values))]

        def positive() -> Any:
            return xp.square(pick()) + xp.number(0.5)

        operations = [
            lambda: pick() + pick(),
            lambda: pick() - pick(),
            lambda: pick() * pick(),
            lambda: pick() * xp.number(params[rng.integers(len(params))]),
            lambda: pick() / positive(),
            lambda: pick() * pick() - pick() * pick(),
            lambda: xp.square(pick()),
            lambda: xp.power(pick(), int(rng.integers(2, 6))),
            lambda: xp.function(FUNCTIONS[rng.integers(len(FUNCTIONS))], xp.log(positive()) + 1),
            lambda: xp.function(FUNCTIONS[rng.integers(2)], positive()),
            lambda: xp.tanh(pick()),
            lambda: xp.sin(pick()),
            lambda: xp.exp(-xp.square(pick())),
            lambda: pick() - xp.mean(pick()),
            lambda: pick() * xp.sum(pick()),
            lambda: xp.max(pick()) - pick(),
            lambda: xp.cumsum(pick(), int(rng.integers(2))),
            lambda: pick() / (1 + xp.norm(pick())),
            lambda: xp.matmul(xp.matmul(pick(), xp.transpose(pick(), (1, 0))), pick()),
            lambda: xp.maximum(pick(), pick()),
            lambda: xp.clip(pick(), -1, 2),
            lambda: xp.where(pick() < pick(), pick(), pick()),
            lambda: xp.store(pick()),
            lambda: xp.either(value := pick(), value * 1),
            lambda: xp.take(pick(), np.array([2, 0, 0]), 0),
            lambda: xp.scatter_add(pick(), np.array([1, 1, 0]), 3),
        ]
        for _ in range(12):
            values.append(operations[rng.integers(len(operations))]())
        return xp.concatenate(values[3:], 0)

    return read


def inputs(seed: int, format: str) -> Any:
    rng = np.random.default_rng([seed, 1])
    x = rng.normal(0, 1, (2, *SHAPE)) * 10.0 ** rng.integers(-3, 2, (2, 3, 1))
    return x.astype(dtype_of(format))


@pytest.mark.parametrize("part", range(4))
def test_arb_lies_in_double_double_and_ball(part: int) -> None:
    finite = 0
    for seed in range(part * 10 * HUNT, (part + 1) * 10 * HUNT):
        x, y = inputs(seed, "float64")
        readings = [formula(seed)(xp, xp.array(x), xp.array(y)) for xp in (Ball(), DoubleDouble())]
        with Arb(1000) as arb:
            truth = formula(seed)(arb, arb.array(x), arb.array(y))
            assert outside(readings[0], truth) == [], seed
            assert outside_double_double(readings[1], truth) == [], seed
            assert all(isinstance(z, flint.arb) for z in truth.data.flat)
        finite += int(np.isfinite(readings[1].tail.radius).sum())
    assert finite > 200 * HUNT


def test_signs_are_those_of_the_exact_values() -> None:
    """Of numbers up to 1e4, whose exponentials leave float64's range."""
    told = 0
    for seed in range(40 * HUNT):
        x, y = 1e3 * inputs(seed, "float64")
        xp = Signs()
        reading = formula(seed)(xp, xp.array(x), xp.array(y))
        known = np.isfinite(reading.sign)
        with Arb(1000) as arb:
            truth = formula(seed)(arb, arb.array(x), arb.array(y)).data
            signs = [(z > 0) - (z < 0) for z in truth[known]]
        assert reading.sign[known].tolist() == signs, seed
        enclosure = reading.enclosure()
        sided = known & (reading.sign != 0) & (abs(reading.mid) <= reading.radius)
        assert np.all(np.sign(enclosure.hi) == reading.sign, where=sided)
        ends = np.abs(enclosure.hi) + enclosure.radius
        assert np.all(np.abs(enclosure.hi) == enclosure.radius, where=sided)
        assert all(
            abs(z) < flint.arb(end) for z, end in zip(truth[sided], ends[sided], strict=True)
        )
        told += int(sided.sum())
    assert told > 40 * HUNT


@pytest.mark.parametrize(("working", "storage"), ARITHMETICS, ids=str)
def test_no_kernel_exceeds_the_bound_of_a_random_formula(working: str, storage: str | None) -> None:
    finite = 0
    for seed in range(12 * HUNT):
        x, y = inputs(seed, storage or working)
        reading = CommonErrors(working, storage)
        bound = reading.bound(formula(seed)(reading, reading.array(x), reading.array(y)))
        with Arb(600) as arb:
            truth = formula(seed)(arb, arb.array(x), arb.array(y))
            for option in kernels(working, storage, False, reading.limit)[seed % 2 :: 2]:
                kernel = kernel_of(option, working)
                got = formula(seed)(kernel, kernel.array(x), kernel.array(y))
                places, _ = exceeds(delivered(got, working, storage), truth, bound)
                assert places == [], (seed, option)
        finite += int(np.isfinite(bound).sum())
    assert finite > 100 * HUNT
