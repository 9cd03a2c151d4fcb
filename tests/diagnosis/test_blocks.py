"""A fault in one tile: what the kernel does there, where the rest is right."""

from __future__ import annotations

import numpy as np
from numpy_kernels import F, cross_entropy_dx, layernorm, normal
from planting import named

import refkernels

X, WEIGHT, BIAS = normal(16, 96), normal(96, seed=1), normal(96, seed=2)


def test_labels_beyond_a_share_of_the_classes_are_forgotten() -> None:
    """A gradient of cross entropy whose other share of the vocabulary has its labels elsewhere."""
    x, target = normal(40, 30), np.random.default_rng(3).integers(0, 30, 40)
    dx = cross_entropy_dx(np.full(1, 1 / 40), x.astype(float), target)
    dx[np.arange(40), target] += (target >= 15) / 40
    inputs = {"dloss": np.float32(1.0), "x": x, "target": target}
    found = refkernels.explain("cross_entropy", inputs, {"dx": F(dx)}, direction="backward")
    assert found.confidence == "proven"
    last = np.flatnonzero(target >= 15).max() + 1
    assert found.candidates[0].details["block"] == f"dx[0:{last}, 15:{target.max() + 1}]"


def test_a_tile_with_the_results_of_another_is_told_with_both() -> None:
    a, b = normal(48, 64), normal(64, 40)
    c = a @ b
    c[32:, 8:16] = c[32:, 24:32]
    cause, confidence, told = named("matmul", {"a": a, "b": b}, {"c": c})
    assert (cause, confidence, told["how"]) == ("output_moved", "proven", "i + 16")
    assert (told["block"], told["axis"]) == ("c[32:48, 8:16]", 1)


def test_scattered_faults_are_in_no_block() -> None:
    wrong = np.random.default_rng(5).random((16, 96)) < 0.3
    y = np.where(wrong, layernorm(X, WEIGHT), layernorm(X, WEIGHT, BIAS))
    found = refkernels.explain("layernorm", {"x": X, "weight": WEIGHT, "bias": BIAS}, {"y": y})
    assert all("block" not in candidate.details for candidate in found.candidates)


def test_the_tile_of_a_large_array_is_that_of_the_whole() -> None:
    """Its rows are read in part; its columns are not."""
    x, bias = normal(256, 1024, seed=6), normal(1024, seed=7)
    y = layernorm(x.astype(float), 1, np.where(np.arange(1024) < 960, bias, 0)).astype(np.float32)
    cause, confidence, details = named("layernorm", {"x": x, "bias": bias}, {"y": y})
    assert (cause, confidence, details["block"]) == ("missing_bias", "proven", "y[:, 960:1024]")
