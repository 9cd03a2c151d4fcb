"""A float64 kernel that computes in float32, by another definition: both are told."""

import numpy as np
import pytest

import refkernels

SEEDS = range(3)


def uncorrected(param, grad, m, v, lr, beta1, beta2, eps, weight_decay) -> dict[str, np.ndarray]:
    """AdamW without bias correction, as MindSpore's AdamWeightDecay."""
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    return {"param": param - lr * (m / (np.sqrt(v) + eps) + weight_decay * param), "m": m, "v": v}


def question(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs = {name: rng.standard_normal(64) for name in ("param", "grad", "m", "v")}
    return {**inputs, "v": np.square(inputs["v"])}


PARAMS = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.05}


def answered(inputs: dict[str, np.ndarray], dtype: type) -> dict[str, np.ndarray]:
    arrays = {name: array.astype(dtype) for name, array in inputs.items()}
    params = {name: dtype(value) for name, value in PARAMS.items()}
    outputs = uncorrected(**arrays, **params)
    assert {array.dtype for array in outputs.values()} == {np.dtype(dtype)}
    return {name: array.astype(np.float64) for name, array in outputs.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_another_definition_in_float32_is_proven(seed: int) -> None:
    inputs = question(seed)
    outputs = answered(inputs, np.float32)
    explanation = refkernels.explain("adamw", inputs, outputs, {**PARAMS, "step": 3})
    assert (explanation.cause, explanation.confidence) == ("no_bias_correction", "proven")
    best = next(c for c in explanation.candidates if c.output == "param")
    assert best.details["computed_in"] == "float32"
    assert "does not correct the bias of m and v, and computes in float32" in explanation.summary
    assert "却以 float32 计算" in explanation.to_markdown("zh")


def test_a_definition_in_float64_says_nothing_of_float32() -> None:
    inputs = question(9)
    outputs = answered(inputs, np.float64)
    explanation = refkernels.explain("adamw", inputs, outputs, {**PARAMS, "step": 3})
    assert (explanation.cause, explanation.confidence) == ("no_bias_correction", "proven")
    assert all("computed_in" not in c.details for c in explanation.candidates)
    assert "float32" not in explanation.summary


def test_the_definition_in_float32_is_a_cast() -> None:
    """No fault is named where the op itself, computed in float32, has the numbers."""
    inputs = {"x": np.random.default_rng(3).standard_normal((6, 9))}
    x = inputs["x"].astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    y = (e / e.sum(1, keepdims=True)).astype(np.float64)
    explanation = refkernels.explain("softmax", inputs, {"y": y})
    assert (explanation.cause, explanation.confidence) == ("float32_cast", "proven")
