"""Distances: gradients where they are 0, and what libraries do otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.distance_ref import cdist, cdist_backward

F = np.float32


def vectors(seed: int = 0, shape: Any = (2, 9, 17)) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(F)


def lengths(a: Any) -> Any:
    return np.sqrt((a * a).sum(-1, keepdims=True))


@pytest.mark.parametrize("p", [1, 2])
def test_a_distance_of_0_is_exact_and_pulls_nowhere(p: int) -> None:
    a = vectors()[0]
    assert (np.diagonal(np.asarray(cdist(a, a, p=p))) == 0).all()
    pulls = cdist_backward(np.eye(9, dtype=F), a, a, p=p)
    assert not np.asarray(pulls.da).any()
    assert not np.asarray(pulls.db).any()


def test_distances_by_products_cancel_and_are_named() -> None:
    a, b = 100 + vectors(1)
    squares = (a * a).sum(-1)[:, None] + (b * b).sum(-1) - 2 * (a @ b.T)
    explanation = refkernels.explain("cdist", {"a": a, "b": b}, {"y": np.sqrt(abs(squares))})
    assert explanation.cause == "distance_by_products"


def test_the_ways_of_libraries_to_take_eps_are_named() -> None:
    """PyTorch 2.13 raises the lengths to eps without a gradient, so that eps has |x|'s."""
    x, other = vectors(2)
    dy, eps = vectors(3, 9), F(5.0)
    norms = lengths(x), lengths(other)
    near, far = (np.maximum(norm, eps) for norm in norms)
    dot = (x * other).sum(-1)
    y = dot[:, None] / (near * far)
    dx = dy[:, None] * (other / far - y * x / norms[0]) / near
    dother = dy[:, None] * (x / near - y * other / norms[1]) / far
    inputs, params = {"x": x, "other": other}, {"eps": float(eps)}
    gradients = {"dx": dx, "dother": dother}
    added = dot / (norms[0] * norms[1] + eps)[:, 0]
    forward = refkernels.explain("cosine_similarity", inputs, {"y": added}, params)
    backward = refkernels.explain(
        "cosine_similarity", {"dy": dy, **inputs}, gradients, params, "backward"
    )
    assert (forward.cause, forward.confidence) == ("eps_on_product", "proven")
    assert backward.cause == "limited_length_differentiated"
    assert backward.confidence == "proven"
