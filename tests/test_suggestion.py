"""Suggestions for mistyped names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels import registry
from refkernels.frameworks import catalog
from refkernels.op import DTYPES
from refkernels.suggestion import did_you_mean, nearest

NAMES = sorted({*registry.ops(), *catalog.names(), *DTYPES})


@given(st.sampled_from(NAMES), st.data())
def test_a_name_with_one_letter_wrong_is_near_a_known_one(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("abcxyz_"))
    wrong = data.draw(
        st.sampled_from(
            [name[:place] + name[place + 1 :], name[:place] + letter + name[place:], name.upper()]
        )
    )
    if len(name) < 5 or wrong in NAMES:
        return
    meant = nearest(wrong, NAMES)
    assert meant is not None
    assert meant == name or abs(len(meant) - len(wrong)) <= 1


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("sine", "sin"), ("layer_norm", "layernorm"), ("LayerNorm", "layernorm"),
        ("pytorch", "torch"), ("torhc", "torch"), ("gelu-tanh", "gelu_tanh"),
        ("float8", None), ("caffe", None), ("x", None), ("", None), ("sigm", "sigmoid"),
    ],
)  # fmt: skip
def test_what_is_near_is_suggested_and_nothing_else(word: str, meant: str | None) -> None:
    assert nearest(word, NAMES) == meant


def test_the_end_of_a_refusal_has_the_suggestion_first() -> None:
    assert did_you_mean("b", ["a", "c"]) == "choose one of a, c"
    assert did_you_mean("epsilon", ["eps"], "it has") == "did you mean 'eps'? It has eps"
    many = [f"name{number}" for number in range(31)]
    assert did_you_mean("name30x", many) == "did you mean 'name30'? It is one of 31"
    assert did_you_mean("zzz", many) == "the nearest of 31 are name9, name8, name7, name6, name5"
    assert did_you_mean("k", []) == "there is none"
