"""A float64 kernel that computes in float32, however inaccurately, is told by its numbers: all are
float32's. Limits and numbers of few bits are no such sign. Another definition is told too."""

from collections.abc import Callable

import numpy as np
import pytest
from hunting import one_in

import refkernels
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


SEEDS = one_in(3, range(3))


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
