"""A failure quotes the cause that `explain` finds; what is not enclosed is no pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.metrology import outputs, summarise
from refkernels.reporting.words.causes import CAUSES
from refkernels.testing import UncertifiedWarning, assert_kernel, assert_rounding, cause

EPS = {"eps": 1e-5}


def one_pass(x: np.ndarray) -> np.ndarray:
    mean = x.mean(axis=-1, keepdims=True)
    variance = (x * x).mean(axis=-1, keepdims=True) - mean * mean
    return (x - mean) / np.sqrt(variance + np.float32(1e-5))


def failure(*arguments: Any, **stated: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_kernel(*arguments, **stated)
    return str(caught.value)


@pytest.mark.usefixtures("causes")
def test_the_cause_is_quoted_with_its_confidence_and_its_own_advice() -> None:
    x = np.random.default_rng(1).normal(100, 1, (32, 256)).astype(np.float32)
    message = failure("layernorm", {"x": x}, one_pass(x), EPS, max_over_plain=4)
    assert "Cause: naive_variance, proven: in this case the kernel computes" in message
    assert f"Next step: {CAUSES['naive_variance']['todo']['en']}" in message


@pytest.mark.usefixtures("causes")
def test_what_failures_of_one_test_say_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, told = np.random.default_rng(21), []
    for number, scale in enumerate((1.0, 2.0**-16, 1.0)):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", f"test_it.py::test_product[{number}] (call)")
        a, b = (scale * rng.uniform(0.5, 2.0, (24, 24)).astype(np.float32) for _ in "ab")
        cut_a, cut_b = ((x.view("u4") & np.uint32(0xFFFFE000)).view("f4") for x in (a, b))
        told.append(failure("matmul", {"a": a, "b": b}, cut_a @ cut_b))
    assert "in this case the kernel truncates its inputs to tf32 or float16" in told[0]
    assert "in 2 failures of this test the kernel truncates its inputs to tf32 (" in told[1]
    assert "in 3 failures of this test the kernel truncates its inputs to tf32 (" in told[2]


@pytest.mark.usefixtures("causes")
def test_no_cause_is_named_where_none_fits() -> None:
    x = np.random.default_rng(2).standard_normal((8, 64)).astype(np.float32)
    noise = np.random.default_rng(3).standard_normal(x.shape).astype(np.float32)
    message = failure("layernorm", {"x": x}, noise, EPS)
    assert "Cause: unknown: none of" in message


@pytest.mark.usefixtures("causes")
def test_rounding_is_named_where_nothing_else_is_wrong() -> None:
    a = np.array([[1, 1e8, -1e8]], np.float32)
    b = np.array([[0.75], [1], [1]], np.float32)
    exact = np.array([[0.75]], np.float32)
    close = np.nextafter(exact, np.float32(1))
    message = failure("matmul", {"a": a, "b": b}, close, max_ulp=0.5)
    assert "Cause: rounding: every element is inside the op's bound" in message
    assert "Next step" not in message


def test_a_process_that_spent_its_time_looks_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cause, "_spent", 0.0)
    monkeypatch.setattr(cause, "SECONDS", 1e-9)  # less than any call takes
    monkeypatch.setattr(cause, "_cause_lines", lambda question: None)
    x = np.ones(3, np.float32)
    with monkeypatch.context() as patched:
        patched.setattr(cause, "LARGEST", 2)
        assert "Cause: not looked for, as the arrays are large" in failure("sin", {"x": x}, x)
    assert "not looked for" not in failure("sin", {"x": x}, x)
    assert "Cause: not looked for, as this process has spent" in failure("sin", {"x": x}, x)


def test_a_fault_of_explain_does_not_hide_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(question: cause.FailedQuestion) -> None:
        raise IndexError("list index out of range\nand more")

    monkeypatch.setattr(cause, "SECONDS", 600.0)
    monkeypatch.setattr(cause, "_cause_lines", broken)
    x = np.ones(3, np.float32)
    message = failure("sin", {"x": x}, x)
    assert "sin y: exceeds_bound: 3 of 3" in message
    assert message.endswith("refkernels.explain failed (IndexError: list index out of range).")


@pytest.mark.usefixtures("causes")
def test_a_failure_is_explained_by_the_truth_that_failed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.linspace(-1.0, 2.0, 21, dtype=np.float32).reshape(3, 7)
    ask, asked = outputs.ask, []

    def counted(op: Any, direction: Any, inputs: Any, params: Any, formats: Any) -> outputs.Asked:
        asked.append(op.name == "softmax" and inputs["x"] is x and params.get("axis", -1) == -1)
        return ask(op, direction, inputs, params, formats)

    monkeypatch.setattr(outputs, "ask", counted)
    assert "Cause: " in failure("softmax", {"x": x}, {"y": np.exp(x)})
    assert sum(asked) == 1


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
