"""Values that a parameter may have, and values that are refused in a clause."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.records import codec
from refkernels.records.parameters import check_parameter, parse_parameter

GOOD = {
    "1e-5": 1e-5,
    "5e-1": 0.5,
    ".5": 0.5,
    "7": 7,
    "[5, 7]": [5, 7],
    "null": None,
    "true": True,
    '"tanh"': "tanh",
    "tanh": "tanh",
    "downscale_in_infer": "downscale_in_infer",
    "norm.beta": "norm.beta",
    "True": True,
    "None": None,
    "-0.0": -0.0,
}
BAD = {
    "9" * 400: "400 characters, more than 200",
    "9" * 150: "an integer beyond 64 bits",
    "1e999": "a number that no float64 can",
    "[1e999]": "a number that no float64 can",
    "NaN": "bare NaN",
    "inf": "not a finite number",
    "[" * 90 + "]" * 90: "nested too deeply",
    "[[1]]": "nested too deeply",
    "[true]": "not a flat list of numbers",
    '["a"]': "not a flat list of numbers",
    '{"a": 1}': "neither a number nor a list",
    '"\\ud800"': "half a character",
    "[" + "1," * 70 + "1]": "lists 71 numbers, more than 64",
    "1e-5x": "neither a number, a list of numbers nor a word",
    "norm.": "neither a number, a list of numbers nor a word",
    "a b": "neither a number, a list of numbers nor a word",
    "": "neither a number, a list of numbers nor a word",
}


@pytest.mark.parametrize("text", GOOD)
def test_values_are_read_as_written(text: str) -> None:
    assert parse_parameter(text) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_what_no_op_takes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=BAD[text]) as error:
        parse_parameter(text)
    assert "\n" not in str(error.value)


@given(st.text() | st.text("[]{}0123456789eE+-., \"'\\udaTrunfl:", max_size=300))
def test_a_parameter_is_bounded_and_finite_or_refused(text: str) -> None:
    try:
        value = parse_parameter(text)
    except ValueError:
        return
    for item in value if isinstance(value, list) else [value]:
        assert item is None or isinstance(item, str | int | float)
        if isinstance(item, int | float):
            assert math.isfinite(float(item))
            assert abs(item) <= 2**63 or isinstance(item, float)
    assert check_parameter(value) == value


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(TREES)
def test_strict_json_reads_what_json_writes(value: Any) -> None:
    import json

    assert codec.loads(json.dumps(value, allow_nan=False)) == value


@pytest.mark.parametrize(
    "text",
    ["NaN", "-Infinity", "[1e400]", '{"a": [-1e999]}', "18446744073709551616",
     '"\\ud800"', '{"\\udfff": 1}', "[" * 100_000, "9" * 5000],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_strict_json_refuses_what_json_takes(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        codec.loads(text)


def test_the_depth_is_limited_where_it_is_asked_for() -> None:
    assert codec.loads("[[1]]", depth=2) == [[1]]
    with pytest.raises(ValueError, match="nested too deeply"):
        codec.loads("[[[1]]]", depth=2)
