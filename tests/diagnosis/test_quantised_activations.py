"""Activations rounded to integers, alone or with the weights: named with their scales; the same
kernel without the rounding is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import refkernels

F = np.float32
RNG = np.random.default_rng(31)
X, W = RNG.standard_normal((24, 64)).astype(F), RNG.standard_normal((10, 64)).astype(F)
BIAS, GAIN = RNG.standard_normal(10).astype(F), RNG.standard_normal(64).astype(F)


def int8(array: Any, axis: int | None = None) -> Any:
    scale = np.abs(array).max(axis=axis, keepdims=True) / F(127)
    return (np.rint(array / scale) * scale).astype(F)


def linear(x: Any, weight: Any) -> Any:
    return x @ weight.T + BIAS


def norm(x: Any) -> Any:
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + F(1e-5)) * GAIN


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


PRODUCTS = (
    ("x", "the tensor", int8(X), W),
    ("x", "each row", int8(X, 1), W),
    ("x, weight", "each row", int8(X, 1), int8(W, 1)),
    ("x, weight", "the tensor, each row", int8(X), int8(W, 1)),
)
OPS: tuple[tuple[str, dict[str, Any], Callable[..., Any]], ...] = (
    ("layernorm", {"weight": GAIN, "bias": np.zeros(64, F)}, norm),
    ("softmax", {}, softmax),
    ("silu", {}, lambda x: x / (1 + np.exp(-x))),
)


@pytest.mark.parametrize("case", PRODUCTS, ids=lambda case: f"{case[0]}: {case[1]}")
def test_a_product_of_int8_activations_is_named_with_its_scales(case: Any) -> None:
    inputs, scale, x, weight = case
    asked = {"x": X, "weight": W, "bias": BIAS}
    found = refkernels.explain("linear", asked, linear(x, weight))
    assert (found.cause, found.confidence) == ("quantised_activations", "proven")
    expected = {"inputs": inputs, "bits": 8, "scale": scale, "scheme": "symmetric"}
    assert found.candidates[0].details == expected


@pytest.mark.parametrize("case", OPS, ids=lambda case: case[0])
def test_int8_activations_of_any_op_are_named(case: Any) -> None:
    op, others, kernel = case
    asked = {"x": X, **others}
    found = refkernels.explain(op, asked, kernel(int8(X, 1)))
    assert (found.cause, found.confidence) == ("quantised_activations", "proven")
    assert found.candidates[0].details["scale"] == "each row"
    assert refkernels.explain(op, asked, kernel(X)).cause in (None, "summation_order")


def test_right_products_and_int8_weights_are_not_blamed() -> None:
    asked = {"x": X, "weight": W, "bias": BIAS}
    right = refkernels.explain("linear", asked, linear(X, W))
    assert right.cause in (None, "summation_order")
    weights = refkernels.explain("linear", asked, linear(X, int8(W, 1)))
    assert weights.cause == "quantised_weights"


def test_differences_that_are_lost_for_another_reason_are_no_integers() -> None:
    """A one-pass variance of float16 numbers whose squares overflow: all of y is 0, as if x were
    rounded to one number; and one outlier, beside which 8 bits leave nothing of the others."""
    x = (1000 + np.random.default_rng(5).standard_normal((4, 6, 30))).astype(np.float16)
    y = np.zeros_like(x)
    explanation = refkernels.explain("group_norm", {"x": x}, y, {"num_groups": 3})
    assert "quantised_activations" not in {
        c.cause for c in explanation.candidates if not c.ruled_out
    }
    wide = np.random.default_rng(6).standard_normal((6, 40)).astype(np.float32)
    wide[:, 3] = 1e20
    lost = np.zeros_like(wide)
    explanation = refkernels.explain("rms_norm", {"x": wide}, lost)
    assert "quantised_activations" not in {
        c.cause for c in explanation.candidates if not c.ruled_out
    }
