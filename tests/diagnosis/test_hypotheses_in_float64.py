"""A hypothesis evaluated in float64 has its own bits there, which prove nothing about a kernel in
float64 that is written like it."""

import numpy as np
import pytest
from hunting import one_in

import refkernels

SHAPES = ((16, 16), (64, 100), (200, 33))


@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_s_layernorm_in_float64_has_no_cause(shape: tuple[int, int]) -> None:
    explanations = []
    for seed in one_in(3, range(3)):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(shape) * 10.0 ** int(rng.integers(-3, 2))
        mean = x.mean(1, keepdims=True)
        rstd = 1.0 / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)
        outputs = {"y": (x - mean) * rstd, "mean": mean[:, 0], "rstd": rstd[:, 0]}
        explanations.append(refkernels.explain("layernorm", {"x": x}, outputs, {"eps": 1e-5}))
    assert [explanation.verdict for explanation in explanations] == ["rounding"] * len(explanations)
    assert {explanation.cause for explanation in explanations} <= {None, "summation_order"}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_unbiased_variance_in_float64_is_named(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal(shape)
    mean = x.mean(1, keepdims=True)
    rstd = 1.0 / np.sqrt(x.var(1, ddof=1, keepdims=True) + 1e-5)
    explanation = refkernels.explain("layernorm", {"x": x}, {"y": (x - mean) * rstd}, {"eps": 1e-5})
    assert (explanation.verdict, explanation.cause) == ("exceeds_bound", "unbiased_variance")
    assert explanation.confidence in ("proven", "matched")
