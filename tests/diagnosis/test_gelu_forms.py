"""GELU's forms are distinguished by the digits they lose: a rounded argument few, 1 + erf all. Of
GELUs whose constants are not exact enough for float64: those of frameworks, and right ones."""

import math

import numpy as np
import pytest

import refkernels


def test_half_x_erfc_is_not_said_to_cancel() -> None:
    x = np.array([-11.973983406269696, -10.5, -9.25])
    for inner, cancels in ((lambda v: math.erfc(-v), False), (lambda v: 1.0 + math.erf(v), True)):
        y = np.array([0.5 * v * inner(v / math.sqrt(2.0)) for v in x])
        cause = refkernels.explain("gelu", {"x": x}, {"y": y}).cause
        assert (cause == "erf_cancellation") is cancels


erf = np.vectorize(math.erf, otypes=[np.float64])
K, C = math.sqrt(2 / math.pi), 0.044715
X = np.random.default_rng(5).standard_normal(300)


@pytest.mark.parametrize(
    ("k", "c", "cause", "constants"),
    [
        (K, np.float32(C), "float32_constants", "0.0447149984539, 0.797884560803"),
        (np.float32(K), np.float32(C), "float32_constants", "0.0447149984539, 0.797884583473"),
        (np.float32(K), C, "float32_constants", "0.044715, 0.797884583473"),
        (0.7978845608, C, "rounded_constants", "0.044715, 0.7978845608"),
        (0.8, C, "rounded_constants", "0.044715, 0.8"),  # its inverse is 1.25, a bfloat16
        (0.79788456, C, "rounded_constants", "0.044715, 0.79788456"),
    ],
)
def test_the_constants_of_the_tanh_approximation_are_found(
    k: float, c: float, cause: str, constants: str
) -> None:
    y = 0.5 * X * (1 + np.tanh(k * (X + c * X**3)))
    explanation = refkernels.explain("gelu_tanh", {"x": X}, {"y": y})
    assert explanation.cause == cause
    assert explanation.candidates[0].details["constants"] == constants


@pytest.mark.parametrize(
    "scaled",
    [X / np.float32(math.sqrt(2.0)), X * np.float32(math.sqrt(0.5))],
    ids=["root", "inverse"],
)
def test_a_root_of_two_in_float32_is_proven(scaled: np.ndarray) -> None:
    explanation = refkernels.explain("gelu", {"x": X}, {"y": 0.5 * X * (1 + erf(scaled))})
    assert (explanation.cause, explanation.confidence) == ("float32_constants", "proven")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_right_kernels_are_not_blamed_for_their_constants(dtype: type) -> None:
    x = X.astype(dtype)
    by_tanh = (x * (1 + np.tanh(dtype(K) * (x + dtype(C) * x**3)))) * dtype(0.5)
    by_erf = (x * (1 + erf(x / dtype(math.sqrt(2.0))))) * dtype(0.5)
    for op, y in (("gelu_tanh", by_tanh), ("gelu", by_erf)):
        explanation = refkernels.explain(op, {"x": x}, {"y": y.astype(dtype)})
        assert explanation.cause not in ("float32_constants", "rounded_constants")
