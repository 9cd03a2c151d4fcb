"""The float64 tier of the activations keeps the contract of `refkernels.arithmetic.fast.Fast`."""

import dataclasses
import functools
from fractions import Fraction

import numpy as np
import pytest

from refkernels import registry
from refkernels.arithmetic import formats, tiers
from refkernels.kernels.elementary.activations import FAST
from refkernels.runs.sweeps import chunk
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import SweepTally

each = pytest.mark.parametrize("name", FAST)


def adversaries(name: str) -> np.ndarray:
    """Random bits, the ends of every binade, where pieces meet, and the op's own inputs."""
    rng = np.random.default_rng(12)
    bits = rng.integers(0, 2**32, 30_000, dtype=np.uint32)
    ends = (np.arange(0, 256, dtype=np.int64)[:, None] << 23) + np.arange(-2, 3)
    ends = ends[(ends >= 0) & (ends < 2**31)].astype(np.uint32)
    meet = np.float32([3.0, 150.0, 0.0, 104.0]).view(np.uint32)[:, None] + np.arange(-40, 41)
    patterns = np.concatenate([bits, ends, meet.ravel().astype(np.uint32)])
    patterns = np.concatenate([patterns, patterns ^ np.uint32(1 << 31)]).view(np.float32)
    own = np.concatenate([c.build("float32")[0]["x"].ravel() for c in registry.get(name).cases()])
    near = rng.uniform(-8, 8, 20_000).astype(np.float32)
    return np.concatenate([patterns, own.astype(np.float32), near])


@each
def test_the_error_is_within_the_bound_at_every_adversary(name: str) -> None:
    op, x = registry.get(name), adversaries(name)
    assert op.fast is FAST[name]
    hi = np.empty(x.size)
    op.fast.kernel(x, hi)
    with np.errstate(invalid="ignore"):
        true = op.evaluate(
            "forward", {"x": x.astype(np.float64)}, {}, ("ulp", "float64", 2.0**-20)
        )["y"]
    scale = np.clip(true.scale, -5000, 1000).astype(np.int32)
    with np.errstate(under="ignore"):
        exact, low, radius = (np.ldexp(part, scale) for part in (true.hi, true.lo, true.radius))
    limit = (~np.isfinite(true.hi) | (true.hi == 0)) & (radius == 0)
    np.testing.assert_array_equal(hi[limit], exact[limit])
    at_infinity = np.isinf(x) & np.isfinite(true.hi)
    np.testing.assert_allclose(hi[at_infinity], exact[at_infinity], rtol=op.fast.error)
    limit |= at_infinity
    assert (np.sign(hi) == np.sign(true.hi))[~limit].all()
    ordinary = ~limit & ~((np.abs(hi) <= 2.0**-200) & (np.abs(exact) <= 2.0**-200))
    error = np.abs((hi[ordinary] - exact[ordinary]) - low[ordinary])
    allowed = (op.fast.error * np.abs(exact) - radius)[ordinary]
    assert (error <= allowed).all(), x[ordinary][np.argmax(error - allowed)]
    assert ordinary.sum() > 5000


@each
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


@pytest.mark.parametrize("name", [name for name in FAST if FAST[name].values])
def test_the_double_doubles_hold_the_exact_value(name: str) -> None:
    x = adversaries(name)
    x = x[(np.abs(x) < 4) & (x != 0)].astype(np.float64)
    hi, lo, radius = np.empty((3, x.size))
    FAST[name].values(x, hi, lo, radius, np.empty(x.size, np.int64))
    assert (np.abs(lo) + radius <= 2.0**-52 * np.abs(hi)).all()
    assert (radius <= np.where(np.abs(x) < 2.0**-60, np.abs(lo / 2), 2.0**-98 * np.abs(hi))).all()
    for v, *parts in zip(x.tolist(), hi.tolist(), lo.tolist(), radius.tolist(), strict=True):
        v, high, low, reach = map(Fraction, (v, *parts))
        line = (min(max(v, -3), 3) + 3) / 6
        assert abs((v * line if name == "hardswish" else line) - high - low) <= reach


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
