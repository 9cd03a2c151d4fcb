"""Correct rounding by the oracles against MPFR, and against Arb for what MPFR lacks: inputs of 16
bits, all of them in a hunt, and wider ones that are hard."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from hunting import HUNT
from tail_hunt import OPS

from refkernels.arithmetic import formats
from refkernels.elementwise.cases import binades
from refkernels.trig_ref.cases import HARD_FLOAT32

sys.path.append(str(Path(__file__).parents[2] / "tools"))
compare = importlib.import_module("compare_with_mpfr")
each = pytest.mark.parametrize("name", OPS)


def assert_rounded_rightly(name: str, x: np.ndarray, format: str) -> None:
    different, open_, tally = compare.compare(name, x, formats.get(format))
    assert (different.size, open_) == (0, 0)
    assert sum(tally.values()) == x.size > 0


@each
@pytest.mark.parametrize("format", ["float16", "bfloat16"])
def test_16_bit_inputs(name: str, format: str) -> None:
    x = compare.inputs(name, formats.get(format), 1 << 16, seed=0)
    assert np.unique(x.view(np.uint16)).size > 60_000
    step = 1 if HUNT > 1 else 7 if name in compare.MPFR else 17  # Arb takes its time
    assert_rounded_rightly(name, x[: 1 << 16][::step], format)


@each
def test_float32_inputs_of_every_binade(name: str) -> None:
    x = compare.inputs(name, formats.BINARY32, 4000, seed=1)
    spread = binades(-149, 127, 2000, formats.BINARY32, np.random.default_rng(1))
    assert_rounded_rightly(name, np.concatenate([x, spread.astype(np.float32)]), "float32")


@each
def test_float64_inputs(name: str) -> None:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-30, 30, 700), binades(-60, 10, 700, formats.BINARY64, rng)])
    assert_rounded_rightly(name, x, "float64")


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_and_hard_arguments_of_periodic_functions(name: str) -> None:
    x = np.random.default_rng(8).integers(0, 2**64, 4000, dtype=np.uint64).view(np.float64)
    assert_rounded_rightly(name, x[np.isfinite(x)], "float64")
    hard = np.array(HARD_FLOAT32.numbers(name), np.float32)
    for format in ("float32", "bfloat16", "float16"):
        assert_rounded_rightly(name, np.concatenate([hard, -hard]), format)
