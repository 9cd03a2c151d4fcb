"""A quick look at a JSON text misses nothing that a walk through its values finds."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refkernels.records import codec as strict_json

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
    return f"{space}{{{','.join(f'{draw(_TEXTS)}:{one}' for one in inner)}}}"


def _walked(text):
    """What a walk through every value says."""
    value = json.loads(text)
    try:
        strict_json._check(value, 100)
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
            strict_json.loads(text)
    else:
        assert strict_json.loads(text) == expected


def test_figures_of_a_record_are_read_without_a_walk():
    line = json.dumps(
        {"digest": "3e1234567890123456789012345678901234567890", "ulp": 0.6013123456789012,
         "count": 4294967296, "small": 1.7e-308, "exact": "0.60131234567890123456789"}
    )  # fmt: skip
    assert re.search(r"\d{19}", line)
    assert not strict_json._suspicious(line)
