"""Elements whose exact value is not enclosed: a check that has checked nothing is no pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.metrology import summarise
from refkernels.testing import UncertifiedWarning, assert_kernel, assert_rounding


def flat_at_zero(xp: Any, x: Any) -> Any:
    """exp(-1/x²), which divides by zero at 0."""
    return xp.exp(-1 / xp.square(x))


def with_a_branch(xp: Any, x: Any) -> Any:
    zero = xp.number(0)
    away = (x < zero) | (x > zero)
    return xp.where(away, flat_at_zero(xp, x), zero)


FLAT = refkernels.oracle(flat_at_zero, "x[...] -> y[...]").op
ZEROS, SOME = np.zeros(3, np.float32), np.array([0, 1, 2, 0, 3], np.float32)


def right(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.exp(-1 / np.square(x.astype(float))).astype(np.float32)


@pytest.mark.parametrize("answer", [right(ZEROS), ZEROS + 7, ZEROS + np.nan, ZEROS + np.inf])
def test_a_kernel_fails_where_no_element_is_enclosed(answer: Any) -> None:
    for options in ({}, {"max_ulp": 1.0}):
        with pytest.raises(AssertionError, match="of none of the 3 elements is enclosed") as caught:
            assert_kernel(FLAT, {"x": ZEROS}, answer, **options)
        assert "uncertified" in str(caught.value)


def test_elements_without_an_enclosure_are_counted_and_the_others_judged() -> None:
    answer = right(SOME)
    with pytest.warns(UncertifiedWarning, match=r"2 of 5 .* first at y\[0\]"):
        assert_kernel(FLAT, {"x": SOME}, answer)
    answer[1] *= 1.01
    with pytest.raises(AssertionError, match="1 of 5 elements are further"):
        assert_kernel(FLAT, {"x": SOME}, answer)


def test_another_branch_certifies_every_element() -> None:
    whole = refkernels.oracle(with_a_branch, "x[...] -> y[...]").op
    assert_kernel(whole, {"x": SOME}, right(SOME))  # a warning would be an error
    with pytest.raises(AssertionError, match="exceeds_bound"):
        assert_kernel(whole, {"x": ZEROS}, ZEROS + 7)


def test_a_bound_of_one_s_own_certifies_nothing_either() -> None:
    unknown = Enclosure(np.zeros(2), 0.0, np.inf)
    with pytest.raises(AssertionError, match="none of the 2 elements"):
        assert_rounding(np.zeros(2, np.float32), unknown, 1.0)


def test_an_explanation_claims_nothing_of_what_is_not_enclosed() -> None:
    nothing = refkernels.explain(FLAT, {"x": ZEROS}, ZEROS + 7)
    assert (nothing.verdict, nothing.cause) == ("uncertified", None)
    some = refkernels.explain(FLAT, {"x": SOME}, right(SOME))
    assert some.verdict == "rounding"
    assert "uncertified" in some.flags
    for lang, word in (("en", "every element"), ("zh", "每个元素")):
        for explanation in (nothing, some):
            assert word not in explanation.to_markdown(lang)
    assert "nothing was checked" in nothing.summary
    assert "2 of its 5 elements is not enclosed" in some.summary


@pytest.mark.parametrize("elements", [3, 3000])  # the NumPy fallback, and the kernel
def test_an_unknown_value_is_no_mismatch_and_no_error(elements: int) -> None:
    got = np.tile(np.array([np.nan, np.inf, 1.0], np.float32), elements // 3)
    radius = np.full(elements, np.inf)
    radius[2] = 0.0
    summary = summarise(got, Enclosure(np.ones(elements), 0.0, radius), np.zeros(elements))
    assert summary.counts["uncertified"] == summary.counts["undecided"] == elements - 1
    assert summary.counts["compared"] == 1
    assert summary.counts["special_value_mismatches"] == summary.counts["beyond_bound"] == 0
