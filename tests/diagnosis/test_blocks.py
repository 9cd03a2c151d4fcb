"""A fault in one tile: what the kernel does there, where the rest is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.arithmetic.arrays import to_float64

X, WEIGHT, BIAS = (
    np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    for seed, shape in enumerate([(16, 96), (96,), (96,)])
)


def layernorm(bias: Any = BIAS, divisor: int = 96) -> Any:
    x = to_float64(X)
    squares = np.sum(np.square(x - x.mean(-1, keepdims=True)), -1, keepdims=True)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(squares / divisor + 1e-5) * WEIGHT + bias
    return y.astype(np.float32)


@pytest.mark.parametrize(
    ("cause", "block", "told", "fault"),
    [
        ("missing_bias", np.s_[:, 64:], "y[:, 64:96]", {"bias": 0.0}),
        ("unbiased_variance", np.s_[12:], "y[12:16, :]", {"divisor": 95}),
        ("missing_bias", np.s_[4:8, 32:64], "y[4:8, 32:64]", {"bias": 0.0}),
    ],
)
def test_a_tile_that_is_computed_otherwise(cause: str, block: Any, told: str, fault: Any) -> None:
    y = layernorm()
    y[block] = layernorm(**fault)[block]
    found = refkernels.explain("layernorm", {"x": X, "weight": WEIGHT, "bias": BIAS}, {"y": y})
    assert (found.cause, found.confidence) == (cause, "proven")
    assert found.candidates[0].details["block"] == told
    assert told in found.summary


def test_labels_beyond_a_share_of_the_classes_are_forgotten() -> None:
    """A gradient of cross entropy whose other share of the vocabulary has its labels elsewhere."""
    rng = np.random.default_rng(3)
    x, target = rng.normal(size=(40, 30)).astype(np.float32), rng.integers(0, 30, 40)
    p = np.exp(to_float64(x))
    p /= p.sum(-1, keepdims=True)
    first = np.flatnonzero(target < 15)
    p[first, target[first]] -= 1.0
    inputs = {"dloss": np.float32(1.0), "x": x, "target": target}
    answer = {"dx": (p / 40).astype(np.float32)}
    found = refkernels.explain("cross_entropy", inputs, answer, direction="backward")
    assert found.confidence == "proven"
    assert found.candidates[0].details["block"] == "dx[0:37, 15:29]"


def test_scattered_faults_are_in_no_block() -> None:
    y, wrong = layernorm(), np.random.default_rng(5).random((16, 96)) < 0.3
    y[wrong] = layernorm(bias=0.0)[wrong]
    found = refkernels.explain("layernorm", {"x": X, "weight": WEIGHT, "bias": BIAS}, {"y": y})
    assert all("block" not in candidate.details for candidate in found.candidates)


def test_the_tile_of_a_large_array_is_that_of_the_whole() -> None:
    """Its rows are read in part; its columns are not."""
    x = np.random.default_rng(6).normal(size=(256, 1024)).astype(np.float32)
    bias = np.random.default_rng(7).normal(size=1024).astype(np.float32)
    wide = to_float64(x) - to_float64(x).mean(-1, keepdims=True)
    y = wide / np.sqrt(np.mean(wide**2, -1, keepdims=True) + 1e-5) + bias
    y[:, 960:] -= bias[960:]
    found = refkernels.explain("layernorm", {"x": x, "bias": bias}, {"y": y.astype(np.float32)})
    assert (found.cause, found.confidence) == ("missing_bias", "proven")
    assert found.candidates[0].details["block"] == "y[:, 960:1024]"
