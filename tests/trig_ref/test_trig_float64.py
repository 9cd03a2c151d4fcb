"""The float64 tier keeps its promise at every float32 that could break it; its constants are right.

The truth is Arb's, the inputs adversarial: next to multiples of pi/2, ends of binades, random bits.
"""

import importlib
import json
import math
import sys
from pathlib import Path

import flint
import numpy as np
import pytest
from anchored import Exact

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.kernels.trigonometric import float64, tables
from refkernels.kernels.trigonometric.gather import WIDTH
from refkernels.trig_ref import OPS, points

POLYNOMIALS = ("SINE", "COSINE", "ASIN", "ATAN")
TOOLS = Path(__file__).parents[2] / "tools"
NAMES = tuple(op.name for op in OPS)
FUNCTIONS = {op.name: op.forward for op in OPS}
FAST = {op.name: op.fast for op in OPS}


def load(tool: str):
    if str(TOOLS) not in sys.path:
        sys.path.insert(0, str(TOOLS))
    return importlib.import_module(tool)


def fast(name: str, x: np.ndarray) -> np.ndarray:
    hi = np.empty(x.size)
    FAST[name].kernel(x, hi)
    return hi


def adversarial() -> np.ndarray:
    """Both signs of: next to multiples of pi/2 and of 1/2, 1 and its neighbours, ends of binades,
    random bit patterns."""
    near = points.hardest(formats.BINARY32).astype(np.float32)
    halves = np.float32(0.5) * np.arange(1, 60, dtype=np.float32)
    around = [np.nextafter(halves, np.float32(end)) for end in (0.0, np.inf)]
    step = 1 << 23
    ends = np.arange(step, 255 * step, step, dtype=np.uint32)
    ends = np.concatenate([ends - 1, ends, ends + 1]).view(np.float32)
    rng = np.random.default_rng(11)
    bits = rng.integers(0, 0x7F800000, 3000, dtype=np.uint32).view(np.float32)
    unit = rng.uniform(0, 1, 1500).astype(np.float32)
    close = 1 - rng.integers(1, 2000, 300).astype(np.float32) * np.float32(2.0**-24)
    x = np.concatenate([near, halves, *around, ends, bits, unit, close])
    return np.concatenate([x, -x])


@pytest.mark.parametrize("name", NAMES)
def test_the_promised_relative_error_holds(name):
    x, worst = adversarial(), 0.0
    for argument, hi in zip(x.tolist(), fast(name, x).tolist(), strict=True):
        if math.isnan(hi):
            assert name in ("asin", "acos")
            assert abs(argument) > 1
            continue
        radius = abs(hi) * FAST[name].error
        worst = max(worst, Exact(name, argument).escape(Enclosure([hi], 0.0, [radius], 0)))
    assert 0.1 < worst <= 1.0 - FAST[name].error


@pytest.mark.parametrize("name", NAMES)
def test_specials_are_those_of_the_double_doubles(name):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45], np.float32)
    hi = fast(name, x)
    exact = FUNCTIONS[name](x.astype(np.float64))
    finite = np.isfinite(exact.hi)
    np.testing.assert_array_equal(np.isfinite(hi), finite)
    np.testing.assert_array_equal(np.signbit(hi[finite]), np.signbit(exact.hi[finite]))
    np.testing.assert_array_equal(hi == 0.0, exact.exact_zero)
    np.testing.assert_allclose(hi, exact.hi, rtol=2.0**-48)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_blocks_of_one_exponent_give_the_same_bits_as_mixed_ones(name):
    x = np.arange(0x42F00000, 0x42F00000 + 3 * WIDTH + 7, dtype=np.uint32).view(np.float32)
    order = np.random.default_rng(12).permutation(2 * x.size)
    mixed = np.concatenate([x, x * np.float32(1e9)])[order]
    answers = np.empty(2 * x.size)
    answers[order] = fast(name, mixed)
    np.testing.assert_array_equal(answers[: x.size], fast(name, x))


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, WIDTH - 1, WIDTH + 1])
def test_an_element_is_the_same_in_arrays_of_every_length(size):
    x = np.random.default_rng(13).integers(0, 2**31, size + 300, dtype=np.uint32).view(np.float32)
    for name in NAMES:
        np.testing.assert_array_equal(fast(name, x[:size]), fast(name, x)[:size])


def test_no_float32_comes_nearer_to_a_multiple_of_half_pi_than_the_budget_says():
    distances = [abs(points.distance(x)) for x in points.hardest(formats.BINARY32)]
    assert len(distances) > 100
    assert float64.NEAREST < min(distances) < 2 * float64.NEAREST


def test_the_chunks_of_two_over_pi_are_short_and_leave_out_whole_turns_only():
    flint.ctx.prec = 1000
    for biased, (first, second, third) in enumerate(tables.QUADRANTS.tolist()):
        unit = 2.0 ** (max(biased, 1) - 150)
        total = sum(flint.arb(part) for part in (first, second, third))
        if not first and not second:
            assert biased < 126
            assert abs(third * math.pi / 2 - 1) < 2.0**-52
            continue
        assert first * unit * 2**27 == int(first * unit * 2**27) < 2**29
        assert second * unit * 2**56 == int(second * unit * 2**56) < 2**29
        assert 0 <= third * unit < 2.0**-56
        turns = (2 / flint.arb.pi() - total) * flint.arb(unit) / 4
        nearest = int((turns + 0.5).floor().unique_fmpz())
        assert abs(turns - nearest) < 2.0**-110  # half a unit in the last place of 2^-57, in turns


def test_the_table_of_arc_tangents_is_right():
    flint.ctx.prec = 300
    assert len(tables.ARC_TANGENT) == 129
    for k, (high, low) in enumerate(tables.ARC_TANGENT.tolist()):
        truth = (flint.arb(k) / 128).atan()
        assert abs(flint.arb(high) + flint.arb(low) - truth) <= truth / flint.arb(2) ** 106


def test_the_polynomials_are_as_near_as_the_tables_say():
    polynomials = load("polynomials")
    path = Path(tables.__file__).with_name("tables.json")
    kept = json.loads(path.read_text("ascii"))["tables"]
    stated = {name: float(kept[name]["about"].rsplit("2^", 1)[1]) for name in POLYNOMIALS}
    assert {target.name for target in polynomials.TARGETS} == set(stated)
    for target in polynomials.TARGETS:
        bound = flint.arb(2) ** flint.arb(stated[target.name])
        assert polynomials.error(target, list(getattr(tables, target.name))) <= bound
    assert stated["COSINE"] <= -50.1  # what float64.py and inverse_float64.py count on


@pytest.mark.parametrize("format", [formats.BINARY16, formats.BFLOAT16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_16_bit_input_is_rounded_as_mpfr_does(name, format):
    compare = load("compare_with_mpfr")
    x = compare.inputs(name, format, 1 << 16, seed=0)
    assert np.unique(x.view(np.uint16)).size > 60_000
    x = x[: 1 << 16] if name in compare.MPFR else x[: 1 << 16][::5]  # Arb takes its time
    different, open_, tally = compare.compare(name, x, format)
    assert (different.size, open_) == (0, 0)
    assert sum(tally.values()) == x.size


@pytest.mark.parametrize("name", NAMES)
def test_float32_inputs_are_rounded_as_mpfr_does(name):
    compare = load("compare_with_mpfr")
    x = compare.inputs(name, formats.BINARY32, 8000, seed=1)[:9000]
    different, open_, _ = compare.compare(name, x, formats.BINARY32)
    assert (different.size, open_) == (0, 0)
