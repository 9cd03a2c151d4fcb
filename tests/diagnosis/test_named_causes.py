"""Causes that frameworks' sources suggest: each rebuilt in NumPy, beside the right kernel."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hunting import one_in
from numpy_kernels import log_softmax

import refkernels
from refkernels import registry


@pytest.mark.parametrize(
    ("by", "weighted", "reduction"),
    one_in(
        2,
        [  # of a run's, any two meet in each of their four ways
            ("labels", "rows", "mean"), ("labels", "rows", "none"),
            ("labels", "terms", "none"), ("labels", "terms", "mean"),
            ("shares", "rows", "none"), ("shares", "rows", "mean"),
            ("shares", "terms", "mean"), ("shares", "terms", "none"),
        ],
    ),
)  # fmt: skip
def test_weighted_smoothing_in_float32_is_named(by: str, weighted: str, reduction: str) -> None:
    """Paddle's float64 loss weights rows, with float32 labels; MindSpore's weights terms, with both
    shares in float32."""
    rng, classes, e = np.random.default_rng(12), 7, np.float32(0.1)
    x, target = rng.standard_normal((24, classes)), rng.integers(0, classes, 24)
    weight, hot = rng.uniform(0.3, 2.0, classes), np.eye(classes, dtype=np.float32)[target]
    own, share = np.float32(1) - e, e / np.float32(classes)
    labels = (own * hot + share).astype(np.float64)
    if by == "shares":
        labels = np.float64(own) * hot.astype(np.float64) + np.float64(share)
    y = log_softmax(x)
    if weighted == "rows":
        rows = (labels * weight).sum(-1)
        loss, total = -(labels * y).sum(-1) * rows, rows.sum()
    else:
        loss, total = -(labels * y * weight).sum(-1), weight[target].sum()
    if reduction == "mean":
        loss = loss.sum() / total
    params = {"reduction": reduction, "label_smoothing": 0.1}
    inputs = {"x": x, "target": target, "weight": weight}
    explanation = refkernels.explain("cross_entropy", inputs, {"loss": loss}, params)
    narrow = {"labels": "float32_labels", "shares": "float32_smoothing"}[by]
    assert explanation.cause == (narrow if weighted == "terms" else "row_weights")
    assert reduction == "mean" or explanation.confidence == "proven"
    if weighted == "rows":
        assert explanation.candidates[0].details == {"with": narrow}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_params_held_in_16_bits_are_proven(dtype: type) -> None:
    """MindSpore's rmsprop: 1 - rho of a float16 rho is 2 % off."""
    rng = np.random.default_rng(13)
    param, grad, accum = rng.standard_normal((3, 200)).astype(dtype).astype(np.float32)
    accum = np.square(accum).astype(dtype).astype(np.float32)
    rho = np.float32(dtype(0.99))
    new = rho * accum + (1 - rho) * grad * grad
    after = param - np.float32(0.1) * grad / (np.sqrt(new) + np.float32(1e-2))
    inputs = {n: a.astype(dtype) for n, a in {"param": param, "grad": grad, "accum": accum}.items()}
    outputs = {"param": after.astype(dtype), "accum": new.astype(dtype)}
    params = {"lr": 0.1, "rho": 0.99, "eps": 1e-2}
    explanation = refkernels.explain("rmsprop", inputs, outputs, params)
    assert (explanation.cause, explanation.confidence) == ("params_rounded", "proven")
    assert f"to a narrower format ({np.dtype(dtype).name})" in explanation.summary


def question(op: str, regime: str, dtype: str) -> tuple[dict[str, Any], dict[str, Any]]:
    case = next(case for case in registry.get(op).cases() if case.regime == regime)
    return case.build(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logits_of_zero_prove_slopes_that_are_added(dtype: str) -> None:
    """Paddle's gradient: 0 and -1/2, of relu(x) and of log(1 + e^-|x|), where x is 0."""
    inputs, params = question("bce_with_logits", "zeros", dtype)
    x, one = inputs["x"], np.ones(1, dtype)
    slope = one / (one + np.exp(-x)) - inputs["target"]
    wrong = inputs["dloss"] * (slope - (x == 0))
    explanation = refkernels.explain("bce_with_logits", inputs, {"dx": wrong}, params, "backward")
    assert (explanation.cause, explanation.confidence) == ("relu_slope_at_zero", "proven")


@pytest.mark.parametrize("op", ["sgd", "momentum"])
def test_a_parameter_that_is_not_decayed_for_its_name_is_proven(op: str) -> None:
    """MindSpore's rule: no decay where the name contains beta or gamma."""
    inputs, params = question(op, "named", "float32")
    assert "beta" in params["name"]
    undecayed = {**params, "weight_decay": 0.0}
    outputs = registry.get(op).plain("forward", inputs, undecayed, "float32")
    explanation = refkernels.explain(op, inputs, outputs, params)
    assert (explanation.cause, explanation.confidence) == ("decay_ignored", "proven")


def test_a_name_has_no_effect_on_the_definition() -> None:
    inputs, params = question("adam", "named", "float32")
    answers = [
        registry.get("adam").evaluate("forward", inputs, {**params, "name": name}, "enclosure")
        for name in ("weight", "norm.beta")
    ]
    for first, second in zip(*(answer.values() for answer in answers), strict=True):
        if first is not None:
            assert np.array_equal(first.hi, second.hi, equal_nan=True)
            assert np.array_equal(first.lo, second.lo, equal_nan=True)


PARAMS = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.05}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_another_definition_is_proven_and_that_it_is_computed_in_float32(kind: type) -> None:
    """AdamW without bias correction, as MindSpore's AdamWeightDecay."""
    rng = np.random.default_rng(9)
    inputs = {name: rng.standard_normal(64) for name in ("param", "grad", "m", "v")}
    inputs["v"] = np.square(inputs["v"])
    param, grad, m, v = (array.astype(kind) for array in inputs.values())
    lr, beta1, beta2, eps, decay = (kind(value) for value in PARAMS.values())
    m, v = beta1 * m + (1 - beta1) * grad, beta2 * v + (1 - beta2) * grad * grad
    outputs = {"param": param - lr * (m / (np.sqrt(v) + eps) + decay * param), "m": m, "v": v}
    assert {array.dtype for array in outputs.values()} == {np.dtype(kind)}
    outputs = {name: array.astype(np.float64) for name, array in outputs.items()}
    explanation = refkernels.explain("adamw", inputs, outputs, {**PARAMS, "step": 3})
    assert (explanation.cause, explanation.confidence) == ("no_bias_correction", "proven")
    computed_in = {c.details.get("computed_in") for c in explanation.candidates} - {None}
    assert computed_in == ({"float32"} if kind is np.float32 else set())
    said = "does not correct the bias of m and v, and computes in float32" in explanation.summary
    assert said == (kind is np.float32)
    assert ("却以 float32 计算" in explanation.to_markdown("zh")) == said
