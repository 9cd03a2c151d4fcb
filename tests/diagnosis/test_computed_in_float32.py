"""A float64 kernel that computes in float32, however inaccurately, is told by its numbers: all are
float32's. Limits and numbers of few bits are no such sign."""

from collections.abc import Callable

import numpy as np
import pytest

from refkernels.diagnosis.explain import explain

Array = np.ndarray


def naive_softplus(x: Array) -> Array:
    """log(1 + e^x) in float32, with an exponential of 17 bits; x itself beyond 20."""
    e = np.exp(x.astype(np.float32)) * np.float32(1 + 2**-17)
    return np.where(x > 20, x, np.log(1 + e).astype(np.float64))


def coarse_log_softmax(x: Array) -> Array:
    """In float32, with an exponential of 17 bits."""
    z = x.astype(np.float32)
    z = z - z.max(-1, keepdims=True)
    e = np.exp(z) * (1 + np.float32(2**-17) * np.cos(z))
    return (z - np.log(e.sum(-1, keepdims=True))).astype(np.float64)


def saturated_tanh(x: Array) -> Array:
    """1 and -1 too early, and right elsewhere."""
    return np.where(np.abs(x) > 5, np.sign(x), np.tanh(x))


def x_of(op: str, width: float) -> Array:
    rng = np.random.default_rng(len(op))
    return width * rng.standard_normal((6, 20))


@pytest.mark.parametrize("width", [1.0, 10.0])
@pytest.mark.parametrize(
    ("op", "kernel"), [("softplus", naive_softplus), ("log_softmax", coarse_log_softmax)]
)
def test_a_coarse_float32_kernel_is_proven(
    op: str, kernel: Callable[[Array], Array], width: float
) -> None:
    x = x_of(op, width)
    explanation = explain(op, {"x": x}, {"y": kernel(x)})
    assert (explanation.cause, explanation.confidence) == ("float32_cast", "proven")


def test_numbers_beside_float32s_are_not() -> None:
    """The same errors, without float32's numbers."""
    x = x_of("log_softmax", 1.0)
    y = coarse_log_softmax(x) * (1 + 2.0**-45)
    assert explain("log_softmax", {"x": x}, {"y": y}).cause != "float32_cast"


def test_a_limit_is_no_number_of_float32() -> None:
    x = x_of("tanh", 6.0)
    explanation = explain("tanh", {"x": x}, {"y": saturated_tanh(x)})
    assert explanation.verdict == "exceeds_bound"
    assert explanation.cause != "float32_cast"


def test_another_op_in_float32_is_not_taken_for_a_coarse_one() -> None:
    x = x_of("softplus", 1.0)
    y = np.logaddexp(0, x.astype(np.float32) * np.float32(1.01)).astype(np.float64)
    assert explain("softplus", {"x": x}, {"y": y}).cause != "float32_cast"


@pytest.mark.parametrize("op", ["log", "sqrt"])
def test_where_no_exact_value_is_finite_no_number_says_so(op: str) -> None:
    x = -1 - np.abs(x_of(op, 1.0))
    y = np.log(-x).astype(np.float32).astype(np.float64)
    explanation = explain(op, {"x": x}, {"y": y})
    assert explanation.verdict == "special_value_mismatch"
    assert explanation.cause is None
