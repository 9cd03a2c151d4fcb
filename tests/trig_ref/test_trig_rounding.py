"""Correct rounding by the oracle against Arb: random and hard inputs, midpoints, and tables."""

import flint
import numpy as np
import pytest
from anchored import Exact
from tail_hunt import rounds_to

from refkernels import trig_ref
from refkernels.arithmetic import formats
from refkernels.kernels.trigonometric import tables
from refkernels.trig_ref.cases import HARD_FLOAT32

FUNCTIONS = {op.name: op.forward for op in trig_ref.OPS}
NAMES = ("sin", "cos", "tan")


def assert_rounded_rightly(name: str, x: np.ndarray, format: str) -> None:
    """The certified rounding of every element lies on Arb's side of both neighbouring midpoints."""
    values, certified = FUNCTIONS[name](x, certify=("rounding", format)).round(format)
    assert certified.all()
    target = formats.get(format)
    for argument, value in zip(x.astype(np.float64), values.astype(np.float64), strict=True):
        assert rounds_to(float(value), target, Exact(name, float(argument)))


@pytest.mark.parametrize("name", NAMES)
def test_random_float64_are_rounded_correctly(name):
    bits = np.random.default_rng(8).integers(0, 2**64, 4000, dtype=np.uint64)
    x = bits.view(np.float64)
    assert_rounded_rightly(name, x[np.isfinite(x)], "float64")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("format", ["float32", "bfloat16", "float16"])
def test_hard_float32_are_rounded_correctly(name, format):
    x = np.array(HARD_FLOAT32.numbers(name), np.float32)
    assert_rounded_rightly(name, np.concatenate([x, -x]), format)


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
    assert value.tolist() == formats.round_to(expected, target).tolist()
    assert certified.all() or power < -1000
    for i, (dy, a) in enumerate(zip(np.ldexp(ties, lift), x, strict=True)):
        assert Exact(name, float(a), float(dy)).escape(dx, i) <= 1.0


def test_the_tables_are_the_constants_they_say():
    """2/pi to its last bit; sin(k/128) and cos(k/128) to the 2^-106 that the budget gives them."""
    flint.ctx.prec = 1700
    words = [int(word) for word in tables.TWO_OVER_PI]
    number = sum(word << (64 * (len(words) - 1 - k)) for k, word in enumerate(words))
    exact = 2 / flint.arb.pi() * flint.arb(2) ** (64 * (len(words) - 1))
    assert number == int(exact.floor().unique_fmpz())
    assert len(tables.SINE_COSINE) == 102
    for k, (sine, sine_low, cosine, cosine_low) in enumerate(tables.SINE_COSINE.tolist()):
        angle = flint.arb(k) / 128
        for high, low, truth in ((sine, sine_low, angle.sin()), (cosine, cosine_low, angle.cos())):
            error = abs(flint.arb(high) + flint.arb(low) - truth)
            assert error <= abs(truth) / flint.arb(2) ** 106
