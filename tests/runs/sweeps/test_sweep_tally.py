"""Tallies merge in any order and lose nothing; patterns and ranges hold exactly their inputs."""

import functools
import json
import random as shuffling

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_helpers import figures, judged, rounded

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, BINARY32, BINARY64
from refkernels.records import codec
from refkernels.runs.sweeps import patterns
from refkernels.runs.sweeps.patterns import RangeError, Span, parse_range
from refkernels.runs.sweeps.tally import SweepTally

SPAN = Span(0x3EFFF000, 0x3F001000)


@functools.cache
def wrong_answers() -> np.ndarray:
    got = rounded(registry.get("cos"), SPAN)
    random = np.random.default_rng(5)
    places = random.integers(0, len(SPAN), 300)
    got.view(np.uint32)[places] += random.integers(1, 60, 300).astype(np.uint32)
    got[1000], got[1001] = np.nan, np.float32(2)
    return got


@functools.cache
def whole_tally() -> SweepTally:
    return judged(registry.get("cos"), SPAN, wrong_answers())


@settings(max_examples=25)
@given(st.lists(st.integers(SPAN.start + 1, SPAN.stop - 1), max_size=6, unique=True), st.randoms())
def test_the_same_tally_however_the_work_is_cut(cuts: list[int], random: shuffling.Random) -> None:
    order = list(range(len(cuts) + 1))
    random.shuffle(order)
    tally = judged(registry.get("cos"), SPAN, wrong_answers(), tuple(cuts), order)
    assert figures(tally) == figures(whole_tally())
    assert not tally.borders


@pytest.mark.parametrize(
    ("op", "first"),
    [
        ("log", 0x80000000 - 50),  # from NaNs to -0, and on to negative numbers
        ("log", 0x7F800000 - 50),  # to infinity, and on to NaNs
        ("sinh", 0x42B2D4F0),  # overflow
        ("erf", 0x407AD440),  # no more than 1
        ("exp", 0xC2CFF1A0),  # underflow
    ],
)
def test_cuts_beside_specials_change_nothing(op: str, first: int) -> None:
    span = Span(first, first + 100)
    random = np.random.default_rng(first)
    x = np.arange(span.start, span.stop, dtype=np.int64).astype(np.uint32).view(np.float32)
    got = x[random.permutation(len(x))]
    got[random.integers(0, len(x), 20)] = random.choice([np.nan, np.inf, 1.0, -0.0], 20)
    whole = judged(registry.get(op), span, got)
    cut = judged(registry.get(op), span, got, tuple(range(span.start + 1, span.stop, 7)))
    assert figures(cut) == figures(whole)
    every = judged(registry.get(op), span, got, tuple(range(span.start + 1, span.stop)))
    assert figures(every) == figures(whole)


def test_json_reads_back_to_the_same_tally() -> None:
    text = codec.dumps(whole_tally().to_json())
    again = SweepTally.from_json(json.loads(text))
    assert codec.dumps(again.to_json()) == text
    for row, expected in zip(again.table, whole_tally().table, strict=True):
        assert (row == expected).all()


def test_counts_beyond_2_53_stay_exact() -> None:
    tally = SweepTally(whole_tally().format)
    tally.counts[7, 0] = 2**53 + 1
    again = SweepTally.from_json(json.loads(codec.dumps(tally.to_json())))
    assert again.inputs == 2**53 + 1


def test_everything_is_every_pattern() -> None:
    assert patterns.everything(BINARY32) == (Span(0, 2**32),)
    assert patterns.count(patterns.everything(BFLOAT16)) == 65536


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("0x3f800000:0x40000000", (Span(0x3F800000, 0x40000001),)),
        ("0x0:0xffffffff", (Span(0, 2**32),)),
        ("1:2", (Span(0x3F800000, 0x40000001),)),
        ("1.0:1.0", (Span(0x3F800000, 0x3F800001),)),
        ("-2:-1", (Span(0xBF800000, 0xC0000001),)),
        ("-1:2", (Span(0, 0x40000001), Span(0x80000000, 0xBF800001))),
        ("0:inf", (Span(0, 0x7F800001), Span(0x80000000, 0x80000001))),
        ("0.1:0.1", (Span(0x3DCCCCCD, 0x3DCCCCCE),)),
    ],
)
def test_a_range_is_read_with_both_ends(text: str, spans: tuple[Span, ...]) -> None:
    assert parse_range(text, BINARY32) == spans


@given(a=st.floats(allow_nan=False, width=16), b=st.floats(allow_nan=False, width=16))
def test_a_range_of_numbers_holds_exactly_the_floats_between(a: float, b: float) -> None:
    low, high = sorted((a, b))
    spans = parse_range(f"{low}:{high}", BINARY16)
    every = np.arange(65536, dtype=np.uint16)
    values = every.view(np.float16).astype(np.float64)
    inside = np.zeros(65536, np.bool_)
    for span in spans:
        assert not inside[span.start : span.stop].any()
        inside[span.start : span.stop] = True
    assert (inside == ((values >= low) & (values <= high))).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1.0", "is not A:B"),
        ("1:2:3", "is not A:B"),
        ("0x3f800000:2.0", "mixes a bit pattern and a number"),
        ("0x40000000:0x3f800000", "is empty"),
        ("2:1", "is empty"),
        ("nan:1", "is empty"),
        ("a:b", "neither a number nor a bit pattern"),
        ("0xzz:0x1", "a bit pattern looks like"),
        ("0x0:0x1ffffffff", "patterns of 32 bits"),
    ],
)
def test_a_range_that_cannot_be_read_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(RangeError, match=said) as refusal:
        parse_range(text, BINARY32)
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_binades_are_named_by_the_exponent_of_their_floats(dtype: str) -> None:
    format = formats.get(dtype)
    for value, exponent in ((1.0, 0), (-1.5, 0), (format.min_normal, format.emin)):
        pattern = patterns.pattern_of(value, format)
        sign, binade = patterns.binade_fields(pattern >> (format.p - 1), format)
        assert (sign, binade) == (1 if value > 0 else -1, exponent)
    subnormal = patterns.pattern_of(format.min_subnormal, format) >> (format.p - 1)
    assert patterns.binade_fields(subnormal, format) == (1, format.emin - 1)
    infinity = patterns.pattern_of(-np.inf, format) >> (format.p - 1)
    assert patterns.binade_fields(infinity, format) == (-1, None)
    assert patterns.binades(format) == 2 * ((format.emax - format.emin + 1) + 2)


def test_splitting_loses_nothing() -> None:
    spans = (Span(5, 40), Span(64, 65))
    pieces = patterns.split(spans, 16)
    assert pieces == [Span(5, 16), Span(16, 32), Span(32, 40), Span(64, 65)]


def test_patterns_and_values_are_inverse() -> None:
    for format in (BINARY16, BFLOAT16, BINARY32, BINARY64):
        for value in (0.0, 1.0, -2.5, format.max, format.min_subnormal, np.inf):
            assert patterns.value_of(patterns.pattern_of(value, format), format) == value


def test_a_negative_float64_in_a_signed_integer_has_its_pattern() -> None:
    format = formats.get("float64")
    bits = int(np.array([-2.0]).view(np.int64)[0])
    assert bits < 0
    assert patterns.hexadecimal(bits, format) == "0xc000000000000000"
