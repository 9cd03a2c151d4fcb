"""A right kernel that computes in the inputs' format and rounds once more keeps to the bound of a
format that does not hold the inputs (`metrology.outputs`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hunting import HUNT

import refkernels
from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, BINARY32, BINARY64, Format
from refkernels.op import Op
from refkernels.truth import Truth

PAIRS = [(BINARY64, BINARY32), (BINARY32, BFLOAT16), (BINARY32, BINARY16), (BINARY64, BFLOAT16)]
PAIRS += [(BINARY16, BFLOAT16), (BFLOAT16, BINARY16)]
RELU = refkernels.oracle(
    lambda xp, x: xp.maximum(x, xp.number(0)), "x[...] -> y[...]", name="relu"
).op
OPS = {op.name: op for op in registry.ops().values() if op.takes("forward") == ("x",)}
OPS["relu"] = RELU
SIZE = 60


def values(op: Op, direction: Any, **inputs: Any) -> Any:
    """The certified answer, rounded to float64."""
    return np.asarray(next(iter(op.by_name(direction, getattr(op, direction)(**inputs)).values())))


def near_midpoints(op: Op, rng: np.random.Generator, own: Format, format: Format) -> Any:
    """Inputs whose results lie as near midpoints of the format as one can get by Newton's method:
    there a second rounding takes most."""
    x = formats.cast(rng.uniform(0.1, 0.9, SIZE), own).astype(np.float64)
    y = values(op, "forward", x=x)
    unit = np.ldexp(1.0, np.frexp(y)[1] - format.p)
    wanted = (np.floor(y / unit) + 0.5) * unit
    for _ in range(4):
        slope = values(op, "backward", dy=np.ones(SIZE), x=x)
        with np.errstate(all="ignore"):
            step = (wanted - values(op, "forward", x=x)) / slope
        x = np.where(np.isfinite(step) & (np.abs(step) < 0.05), x + step, x)
    x = np.concatenate([x, np.nextafter(x, 0.0), np.nextafter(x, 1.0), rng.standard_normal(SIZE)])
    return formats.cast(x, own)


def off(got: Any, exact: Enclosure) -> Any:
    with np.errstate(invalid="ignore"):  # infinities, which are not compared
        return np.abs((got.astype(np.float64) - exact.hi) - exact.lo)


@pytest.mark.parametrize(("own", "format"), PAIRS, ids=lambda pair: str(pair))
def test_results_rounded_twice_keep_to_the_bound(own: Format, format: Format) -> None:
    """A run tries every third op in each pair of formats, so each op in two; a hunt all."""
    assert not format.holds(own)
    tried, turn = 0, PAIRS.index((own, format)) % 3
    for name, op in list(OPS.items())[turn if HUNT == 1 else 0 :: 3 if HUNT == 1 else 1]:
        if op.params:
            continue
        rng = np.random.default_rng([3, *name.encode(), own.p, format.p])
        inputs = {"x": near_midpoints(op, rng, own, format)}
        truth = Truth(op, "forward", inputs, {}, format)
        exact = truth.reference["y"]
        computing = formats.working_format(own)
        for first in (exact.round(computing)[0], truth.plain(computing)["y"]):
            twice = formats.cast(first, format)
            usable = np.isfinite(np.asarray(exact)) & np.isfinite(twice.astype(np.float64))
            slack = exact.radius + np.abs(exact.hi) * 2.0**-52  # of this subtraction
            kept = off(twice, exact) <= truth.bound()["y"] + (slack if own is not BINARY64 else 0)
            assert kept[usable].all(), (name, inputs["x"][usable & ~kept])
            tried += int(usable.sum())
    assert tried > 3_000


def test_a_bound_of_an_op_that_rounds_nothing_is_the_rounding_of_its_input() -> None:
    x = np.concatenate([np.random.default_rng(8).standard_normal(500), [0.5, -2.0, 3.0]])
    truth = Truth(RELU, "forward", {"x": x}, {}, BINARY32)
    bound, representable = truth.bound()["y"], x.astype(np.float32) == x
    least = BINARY32.min_subnormal
    assert (bound[representable | (x < 0.0)] <= least).all()
    assert (bound[~representable & (x > 0.0)] >= BINARY32.u * x[~representable & (x > 0.0)]).all()
    assert (bound <= 2.0 * BINARY32.u * np.abs(x) + least).all()
    same = Truth(RELU, "forward", {"x": x.astype(np.float32)}, {}, BINARY32)
    assert not same.bound()["y"].any()
