"""A failure quotes the cause that `explain` finds, with its confidence and its advice."""

from typing import Any

import numpy as np
import pytest

from refkernels.metrology import outputs
from refkernels.reporting.words.causes import CAUSES
from refkernels.testing import assert_kernel, cause

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
    assert f"Next step: {CAUSES['naive_variance'].todo['en']}" in message


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
