"""The kernels' polynomials are as near as their tables say, and no element depends on those beside
it. (The tables: arithmetic/test_tables, and whatever encloses values made of them.)"""

import importlib
import json
from pathlib import Path

import flint
import numpy as np
import pytest

from refkernels.arithmetic import formats
from refkernels.kernels.trigonometric import float64, tables
from refkernels.kernels.trigonometric.gather import WIDTH
from refkernels.trig_ref import OPS, points

POLYNOMIALS = ("SINE", "COSINE", "ASIN", "ATAN")
TOOLS = Path(__file__).parents[2] / "tools"
NAMES = tuple(op.name for op in OPS)
FAST = {op.name: op.fast for op in OPS}


def fast(name: str, x: np.ndarray) -> np.ndarray:
    hi = np.empty(x.size)
    FAST[name].kernel(x, hi)
    return hi


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


def test_the_polynomials_are_as_near_as_the_tables_say(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    polynomials = importlib.import_module("polynomials")
    path = Path(tables.__file__).with_name("tables.json")
    kept = json.loads(path.read_text("ascii"))["tables"]
    stated = {name: float(kept[name]["about"].rsplit("2^", 1)[1]) for name in POLYNOMIALS}
    assert {target.name for target in polynomials.TARGETS} == set(stated)
    for target in polynomials.TARGETS:
        bound = flint.arb(2) ** flint.arb(stated[target.name])
        assert polynomials.error(target, list(getattr(tables, target.name))) <= bound
    assert stated["COSINE"] <= -50.1  # what float64.py and inverse_float64.py count on
