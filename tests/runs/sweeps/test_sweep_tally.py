"""Tallies: merging is associative and commutative, JSON loses nothing, integers stay exact."""

import functools
import json
import random as shuffling

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_helpers import figures, judged, rounded

from refkernels import registry
from refkernels.records import codec
from refkernels.runs.sweeps.patterns import Span
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
