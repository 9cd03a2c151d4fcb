"""The vectorised judge gives exactly the counts of the careful one, whatever is planted."""

from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_helpers import careful, figures, judged, rounded

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.fast import Fast
from refkernels.metrology import ulp_distance, ulp_error
from refkernels.op import Op
from refkernels.runs.sweeps import judging, patterns, plain
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import BEYOND

# Subnormals, around 1, where exp overflows, the largest floats with infinity and NaNs, negative
# zero, the end of all patterns, each across a binade's border; where exp underflows by far, and
# where cos changes by less than float64 tells.
SPANS = [
    Span(0, 3000),
    Span(0x007FF000, 0x00801000),
    Span(0x3F7FF000, 0x3F801234),
    Span(0x42B17218 - 2000, 0x42B17218 + 2000),
    Span(0x7F7FF800, 0x7F800800),
    Span(0x80000000, 0x80001000),
    Span(0xBF7FFF00, 0xBF800F00),
    Span(0xC3160000, 0xC3160400),
    Span(0x35800000, 0x35800400),
    Span(0xFFFFF000, 0x100000000),
]
OPS = ["cos", "sin", "exp"]


def op_named(name: str) -> Op:
    op = registry.get(name)
    assert op.fast is not None
    return op


def planted(got: Any, random: np.random.Generator, share: float) -> Any:
    """Answers with faults of every kind in a share of them."""
    wrong = got.copy()
    bits = wrong.view(np.uint32)
    places = np.flatnonzero(random.random(got.size) < share)
    for place in places:
        kind = random.integers(0, 9)
        if kind < 4:
            bits[place] = (int(bits[place]) + int(random.choice([-1, 1, 2, -3, 700]))) % 2**32
        elif kind == 4:
            bits[place] ^= np.uint32(0x80000000)
        else:
            wrong[place] = [np.nan, np.inf, -np.inf, 0.0, -0.0][kind - 5]
    return wrong


@pytest.mark.parametrize("name", [*OPS, "hardsigmoid"])
@pytest.mark.parametrize("share", [0.0, 0.002, 0.3])
def test_the_fast_kernel_counts_what_the_careful_one_counts(name: str, share: float) -> None:
    op = op_named(name)
    random = np.random.default_rng([7, int(1000 * share)])
    for span in SPANS:
        got = planted(rounded(op, span), random, share)
        fast, slow = judged(op, span, got), judged(careful(op), span, got)
        assert figures(fast) == figures(slow)
        assert fast.inputs == len(span)
        assert int(fast.distances.sum()) == fast.total("compared")


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 600), st.sampled_from(OPS), st.integers(0, 2**31))
def test_fast_and_careful_judging_agree_on_any_span(start: int, name: str, seed: int) -> None:
    op, span = op_named(name), Span(start, start + 500)
    got = planted(rounded(op, span), np.random.default_rng(seed), 0.1)
    assert figures(judged(op, span, got)) == figures(judged(careful(op), span, got))


@pytest.mark.parametrize("name", OPS)
def test_a_tier_that_decides_little_gives_the_same_counts(name: str) -> None:
    """With an error of 2^-26 a quarter of the inputs goes to the oracle."""
    op = op_named(name)
    assert op.fast is not None
    vague = replace(op, fast=Fast(op.fast.kernel, 2.0**-26))
    for span in SPANS:
        got = planted(rounded(op, span), np.random.default_rng(3), 0.01)
        untiered, tiered = judged(vague, span, got), judged(op, span, got)
        assert figures(untiered) == figures(tiered)
        assert untiered.total("undecided") == 0
    tried = judged(vague, SPANS[2], rounded(op, SPANS[2]))
    assert sum(tried.tiers.values()) == len(SPANS[2])


def test_wrong_answers_to_values_that_underflow_need_no_later_tier() -> None:
    """Paddle's exp(-150), say, is 2.9e-39."""
    op, span = op_named("exp"), Span(0xC3160000, 0xC3160400)
    got = np.full(len(span), np.float32(2.9e-39))
    fast, slow = judged(op, span, got), judged(careful(op), span, got)
    assert figures(fast) == figures(slow)
    assert fast.tiers == {"float64": len(span)}


@pytest.mark.parametrize(
    ("name", "where"),  # where the answers cross 2^-10, -0.5, 2 and 2^30
    [("sin", 0x3A800000), ("cos", 0x40060A92), ("exp", 0x3F317218), ("exp", 0x41A65AF5)],
)
@pytest.mark.parametrize("share", [1.0, 0.02])
def test_faithful_answers_around_a_power_of_two(name: str, where: int, share: float) -> None:
    """Those beside the right ones, on the side of the exact value, which integers alone judge."""
    op, span = op_named(name), Span(where - 3000, where + 3000)
    got = rounded(op, span)
    assert op.fast is not None
    exact = np.empty(len(span))
    op.fast.kernel(patterns.values_of(np.arange(span.start, span.stop), formats.BINARY32), exact)
    chosen = np.random.default_rng(5).random(len(span)) < share
    beside = np.nextafter(got, np.where(exact > got, np.inf, -np.inf).astype(np.float32))
    got[chosen] = beside[chosen]
    fast, slow = judged(op, span, got), judged(careful(op), span, got)
    assert figures(fast) == figures(slow)
    assert fast.inputs == fast.total("faithful") == len(span)
    assert fast.total("correct") == (~chosen).sum()


def test_an_error_of_zero_is_an_error_that_is_known() -> None:
    def copied(x: Any, hi: Any) -> None:
        hi[:] = x

    op, span = replace(op_named("sin"), fast=Fast(copied, 0.0)), Span(0x3F800000, 0x3F801000)
    got = patterns.values_of(np.arange(span.start, span.stop), formats.BINARY32)
    tally = judged(op, span, got)
    assert tally.worst[127, 0] == 0.0
    assert tally.worst_bits[127].tolist() == [span.start, span.start]


def test_correctly_rounded_answers_are_all_counted_so() -> None:
    for name in OPS:
        for span in SPANS:
            tally = judged(op_named(name), span, rounded(op_named(name), span))
            assert tally.total("correct") == tally.total("faithful") == len(span)
            assert not tally.firsts[:, 0].max() >= 0
            assert tally.worst[:, 0].max() <= 0.5 + 2.0**-20


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_formats_agree_with_metrology(dtype: str) -> None:
    op, span = op_named("sin"), Span(0, 65536)
    got = rounded(op, span, dtype)
    bits = got.view(np.uint16)
    bits[np.isfinite(got.astype(np.float32)) & (np.arange(65536) % 7 == 0)] += np.uint16(1)
    tally = judged(op, span, got)
    format = formats.get(dtype)
    x = patterns.values_of(np.arange(65536), format)
    with np.errstate(invalid="ignore"):
        exact = op.evaluate("forward", {"x": x}, {}, ("rounding", format))["y"]
    error, distance = ulp_error(got, exact), ulp_distance(got, exact)
    assert tally.worst[:, 0].max() == np.nanmax(np.abs(error.value))
    compared = np.isfinite(error.value)
    assert tally.total("compared") == compared.sum()
    for steps in (0, 1):
        assert tally.distances[steps] == (distance[compared] == steps).sum()


def test_a_step_against_the_exact_values_is_counted_once_and_its_place_kept() -> None:
    op, span = op_named("cos"), Span(0x3F000000, 0x3F010000)
    got = rounded(op, span)
    assert judged(op, span, got).total("inversions") == 0
    place = 0x3F008123
    got[place - span.start] = np.nextafter(got[place - span.start - 40], np.float32(2))
    tally = judged(op, span, got)
    assert tally.total("inversions") == 1
    assert tally.firsts[judging.INVERSIONS].tolist()[0] == place
    cut = judged(op, span, got, (place,))
    assert figures(cut) == figures(tally)


@pytest.mark.parametrize("tier", ["fast", "careful"])
@pytest.mark.parametrize(
    ("name", "start"),
    [("cos", 0x35800000), ("cos", 0x00000100), ("exp", 0xC3160000), ("exp", 0xC4480000),
     ("tanh", 0x41400000), ("erf", 0x40A00000), ("sin", 0x3FC90F00), ("log", 0x3F7FFFC0)],
)  # fmt: skip
def test_every_step_against_the_exact_values_is_counted(name: str, start: int, tier: str) -> None:
    """Also where the values differ by less than float64's resolution, or underflow in it."""
    op, span = op_named(name), Span(start, start + 200)
    got = np.random.default_rng(start).choice(np.array([0.5, 0.75, 1.0], np.float32), 200)
    x = patterns.values_of(np.arange(span.start, span.stop), formats.BINARY32).tolist()
    with mpmath.workprec(400):
        exact = [getattr(mpmath, name)(value) for value in x]
    against = [
        (got[i] > got[i - 1] and exact[i] < exact[i - 1])
        or (got[i] < got[i - 1] and exact[i] > exact[i - 1])
        for i in range(1, 200)
    ]
    tally = judged(op if tier == "fast" else careful(op), span, got)
    assert tally.total("inversions") == sum(against) > 20


def test_an_invariant_that_is_violated_is_named_with_its_first_input() -> None:
    op, span = op_named("cos"), Span(0x40490000, 0x40491000)
    got = rounded(op, span)
    got[17] = got[99] = np.float32(-1.0000002)
    tally = judged(op, span, got)
    answer = int(np.float32(-1.0000002).view(np.uint32))
    assert tally.invariants == {"at_most_one": [2, span.start + 17, answer]}


def test_large_distances_are_counted_by_powers_of_two() -> None:
    op, span = op_named("cos"), Span(0x3F000000, 0x3F000400)
    got = rounded(op, span)
    for place, steps in ((1, 5), (2, 1023), (3, 1024), (4, 2047), (5, 2048), (6, 1 << 22)):
        got.view(np.uint32)[place] -= np.uint32(steps)
    counts = {
        judging.distance_label(place): int(number)
        for place, number in enumerate(judged(op, span, got).distances)
        if number
    }
    top = "4194304-8388607"
    expected = {"0": 1018, "5": 1, "1023": 1, "1024-2047": 2, "2048-4095": 1, top: 1}
    assert counts == expected


def test_the_widened_interval_holds_every_value_within_the_error() -> None:
    """At the ends of what the contract allows, in exact arithmetic."""
    from fractions import Fraction

    for error in (2.0**-50, 2.0**-44, 2.0**-26):
        w = plain.widened(error)
        for h in (1.0, 1.5, np.nextafter(2.0, 0), 3e-41, 2.0**-149, 1e38):
            low, high = Fraction(h * (1.0 - w)), Fraction(h * (1.0 + w))
            assert low <= Fraction(h) / (1 + Fraction(error))
            assert high >= Fraction(h) / (1 - Fraction(error))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", ["gelu", "mish", "hardswish"])
def test_answers_beyond_the_bound_of_an_op_s_forms_are_counted(name: str, dtype: str) -> None:
    """gelu has no limit in ulp: where 1 + erf cancels, its forms allow any number of them."""
    op, format = registry.get(name), formats.get(dtype)
    minus_one = 0xBC00 if dtype == "float16" else 0xBF800000
    span = Span(minus_one, minus_one + 2000)  # from x = -1 on
    x = patterns.values_of(np.arange(span.start, span.stop), format)
    right = op.evaluate("forward", {"x": x}, {}, ("rounding", format))["y"].round(format)[0]
    assert BEYOND not in judged(op, span, right).invariants
    wrong = right.copy()
    wrong[1234] = wrong[1234] * x.dtype.type(1.01)
    assert judged(op, span, wrong).invariants[BEYOND][:2] == [1, span.start + 1234]
