"""Records read back as written; a quick look at a JSON text misses nothing that a walk finds."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refkernels.records import codec

_DIGITS = st.text("0123456789", min_size=1, max_size=25)
_EXPONENTS = st.tuples(
    st.sampled_from("eE"), st.sampled_from(("", "+", "-")), st.integers(0, 400).map(str)
).map("".join)
_NUMBERS = st.tuples(
    st.sampled_from(("", "-")),
    st.sampled_from(("0", "1", "9", "18446744073709551615", "9" * 300)) | _DIGITS.map("7".__add__),
    st.just("") | _DIGITS.map(".".__add__),
    st.just("") | _EXPONENTS,
).map("".join)
_TEXTS = st.text().map(json.dumps) | st.sampled_from(
    ('"\\ud800"', '"\\uD83D\\uDE00"', '"e999,"', '", 12345678901234567890"', '"\\\\ud800"', '"é"')
)
_SPACES = st.sampled_from(("", " ", "\t", "\n", "\r "))


@st.composite
def _json(draw, depth=2):
    space = draw(_SPACES)
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind == 0:
        return space + draw(_NUMBERS) + draw(_SPACES)
    if kind == 1:
        return space + draw(_TEXTS) + draw(_SPACES)
    inner = draw(st.lists(_json(depth - 1), max_size=3))
    if kind == 2:
        return f"{space}[{','.join(inner)}]"
    return f"{space}{{{','.join(f'{draw(_TEXTS)}:{item}' for item in inner)}}}"


def _walked(text):
    """What a walk through every value says."""
    value = json.loads(text)
    try:
        codec._check(value, 100)
    except ValueError:
        return None
    return value


@given(_json())
@example("1e999")
@example("-18446744073709551616")
@example("[1E+0400]")
@example(f'{{ "a" :-{"1" * 400}.5 }}')
def test_what_is_too_large_or_half_a_character_is_refused_wherever_it_stands(text):
    expected = _walked(text)
    if expected is None:
        with pytest.raises(ValueError, match=r"float64|64 bits|half a character"):
            codec.loads(text)
    else:
        assert codec.loads(text) == expected


def test_figures_of_a_record_are_read_without_a_walk():
    line = json.dumps(
        {"digest": "3e1234567890123456789012345678901234567890", "ulp": 0.6013123456789012,
         "count": 4294967296, "small": 1.7e-308, "exact": "0.60131234567890123456789"}
    )  # fmt: skip
    assert re.search(r"\d{19}", line)
    assert not codec.suspicious(line)


def test_json_is_strict_and_keeps_what_is_not_finite() -> None:
    text = codec.dumps({"a": [math.inf, -math.inf, math.nan, 1.5], "b": (1,), "c": "数"})
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": ["inf", "-inf", "nan", 1.5],
        "b": [1],
        "c": "数",
    }


_FIGURES = st.floats() | st.integers(-(2**63), 2**63) | st.booleans() | st.none()
_TREES = st.recursive(
    _FIGURES, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner)
)


@given(_TREES)
def test_what_is_written_reads_back(tree: object) -> None:
    line = codec.dumps(tree)
    read = json.loads(line, parse_constant=pytest.fail)
    assert repr(codec.restored(read, ())) == repr(tree)
    assert codec.holds_words(line) or repr(read) == repr(tree)


@given(st.floats(width=16), st.sampled_from((np.float16, np.float32, np.float64, float)))
def test_a_figure_of_any_kind_is_stored_and_read(value: float, kind: type) -> None:
    (stored,) = codec.storable([kind(value)])
    assert type(stored) is (float if math.isfinite(value) else str)
    assert repr(codec.number(json.loads(json.dumps(stored, allow_nan=False)))) == repr(value)


def test_counts_and_truth_values_stay_what_they_are() -> None:
    assert codec.figure(np.int64(3)) == 3
    assert codec.figure(np.True_) is True
    assert codec.number(None) is None


def test_words_that_are_texts_by_definition_stay_texts() -> None:
    record = {"decimal": "nan", "max": "inf", "inner": [{"hex": "inf", "ulp": "-inf"}]}
    assert codec.restored(record, {"decimal", "hex"}) == {
        "decimal": "nan",
        "max": math.inf,
        "inner": [{"hex": "inf", "ulp": -math.inf}],
    }
