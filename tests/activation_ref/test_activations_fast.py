"""Sweeps of the activations judge by their float64 tier, and no tail needs multiple precision."""

import dataclasses
import functools

import numpy as np
import pytest

from refkernels import registry
from refkernels.arithmetic import formats, tiers
from refkernels.kernels.elementary.activations import FAST
from refkernels.runs.sweeps import chunk
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import SweepTally


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize(
    "first", [0x40400000 - 3000, 0xC0400000 - 3000, 0x00000000, 0x7F800000 - 9]
)
def test_a_sweep_judges_as_the_oracle_alone_does(name: str, first: int) -> None:
    """Right answers, answers an ulp off, zeros of either sign and NaN."""
    op, span = registry.get(name), Span(first, first + 6000 if first < 0x7F000000 else first + 20)
    x = np.arange(span.start, span.stop, dtype=np.int64).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        got = op.plain("forward", {"x": x}, {}, formats.get("float32"))["y"].astype(np.float32)
        got[::7] = np.nextafter(got[::7], np.float32(np.inf))
        got[1::50] = np.nan
        got[2::50] *= np.float32(-1)
    evaluate = functools.partial(op.formulas.evaluate, "forward", params={})
    by_formula = dataclasses.replace(
        op, fast=None, forward=lambda x, certify: evaluate({"x": x}, certify=certify)
    )
    tallies = [SweepTally(formats.BINARY32) for _ in range(2)]
    for judged, tally in zip((op, by_formula), tallies, strict=True):
        chunk.judge_call(judged, span, got, tally)
    np.testing.assert_array_equal(*(tally.counts for tally in tallies))
    np.testing.assert_array_equal(*(tally.distances for tally in tallies))


@pytest.mark.parametrize("name", [op.name for op in registry.ops().values() if op.fast])
@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32"])
def test_no_rounding_of_a_tail_needs_multiple_precision(name: str, format: str) -> None:
    """Ends of all binades: a value that saturates or underflows is a zero or a limit of known sign,
    and its rounding is that of the formula's own reading or of the double-doubles."""
    op = registry.get(name)
    bits = (np.arange(0, 255)[:, None] << 23) + np.array([1, 1 << 22, (1 << 23) - 1])
    bits = np.concatenate([bits.ravel(), bits.ravel() + (1 << 31)]).astype(np.uint32)
    x = bits.view(np.float32)
    with tiers.counted() as counted:
        certified = op.evaluate("forward", {"x": x}, {}, ("rounding", format))["y"]
    assert counted.get("exact", 0) == 0
    wide = op.evaluate("forward", {"x": x.astype(np.float64)}, {}, ("rounding", format))["y"]
    (rounded, sure), (right, certain) = (each.round(format) for each in (certified, wide))
    assert (sure & certain).all()
    np.testing.assert_array_equal(np.isnan(rounded), nan := np.isnan(right))
    assert rounded[~nan].tobytes() == right[~nan].tobytes()
