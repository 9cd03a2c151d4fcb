"""Causes that frameworks' sources suggest: each rebuilt in NumPy, beside the right kernel."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hunting import one_in

import refkernels
from refkernels import registry


def log_softmax(x: np.ndarray) -> np.ndarray:
    d = x - x.max(-1, keepdims=True)
    return d - np.log(np.exp(d).sum(-1, keepdims=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "classes", "spread"), [(24, 7, 24), (24, 7, 8), (24, 30, 32)])
def test_smoothing_over_another_number_of_classes_is_proven(
    dtype: type, rows: int, classes: int, spread: int
) -> None:
    rng = np.random.default_rng(rows + classes)
    x = rng.standard_normal((rows, classes)).astype(dtype)
    target = rng.integers(0, classes, rows)
    y, e = log_softmax(x), dtype(0.125)
    own = y[np.arange(rows), target]
    loss = -(1 - e) * own - e / dtype(spread) * y.sum(-1)
    params = {"reduction": "none", "label_smoothing": 0.125}
    inputs = {"x": x, "target": target}
    explanation = refkernels.explain("cross_entropy", inputs, {"loss": loss}, params)
    what = ("divisor", "divisor") if spread == classes + 1 else ("constant", "value")
    assert (explanation.cause, explanation.confidence) == (f"{what[0]}_differs", "proven")
    assert explanation.candidates[0].details[what[1]] == spread
    right = -(1 - e) * own - e / dtype(classes) * y.sum(-1)
    explanation = refkernels.explain("cross_entropy", inputs, {"loss": right}, params)
    assert explanation.cause in (None, "summation_order")


def test_labels_smoothed_in_float32_are_proven() -> None:
    """Paddle's cross_entropy in float64: its one-hot labels are float32."""
    rng, classes, e = np.random.default_rng(11), 7, np.float32(0.1)
    x, target = rng.standard_normal((24, classes)), rng.integers(0, classes, 24)
    labels = (np.float32(1) - e) * np.eye(classes, dtype=np.float32)[target] + e / np.float32(7)
    params = {"reduction": "none", "label_smoothing": 0.1}
    inputs = {"x": x, "target": target}
    loss = -(labels * log_softmax(x)).sum(-1)
    explanation = refkernels.explain("cross_entropy", inputs, {"loss": loss}, params)
    assert (explanation.cause, explanation.confidence) == ("float32_labels", "proven")
    right = 0.9 * np.eye(classes)[target] + 0.1 / classes
    loss = -(right * log_softmax(x)).sum(-1)
    explanation = refkernels.explain("cross_entropy", inputs, {"loss": loss}, params)
    assert explanation.verdict == "rounding"
    assert explanation.cause != "float32_labels"


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


@pytest.mark.parametrize("eps", [1e-5, float(np.float32(1e-5))])
def test_an_rms_norm_that_rounds_its_last_factor_is_proven(eps: float) -> None:
    """OneFlow's RMSLayerNorm in float64, with and without eps in float32."""
    rng = np.random.default_rng(8)
    x, weight = rng.standard_normal((6, 32)), rng.uniform(0.5, 2.0, 32)
    r = 1.0 / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps)
    y = x.astype(np.float32).astype(np.float64) * r * weight
    inputs, params = {"x": x, "weight": weight}, {"eps": 1e-5}
    explanation = refkernels.explain("rms_norm", inputs, {"y": y}, params)
    assert (explanation.cause, explanation.confidence) == ("intermediate_rounded", "proven")
    assert explanation.candidates[0].details["format"] == "float32"
    explanation = refkernels.explain("rms_norm", inputs, {"y": x * r * weight}, {"eps": eps})
    assert explanation.cause in (None, "summation_order")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_a_lamb_that_clips_the_gradient_first_is_named(dtype: type, scale: float) -> None:
    """As apex's, with max_grad_norm 1; a gradient of a smaller norm is left as it is."""
    rng = np.random.default_rng(9)
    param, grad, m, v = (rng.standard_normal(64).astype(dtype) for _ in range(4))
    grad, v = dtype(scale) * grad, np.square(v)
    inputs = {"param": param, "grad": grad, "m": m, "v": v}
    lr, beta1, beta2, eps, decay, step = 0.0078125, 0.875, 0.984375, 2.0**-20, 0.0625, 3
    g = grad / max(dtype(1), np.linalg.norm(grad))
    new_m, new_v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    m_hat, v_hat = new_m / dtype(1 - beta1**step), new_v / dtype(1 - beta2**step)
    update = m_hat / (np.sqrt(v_hat) + dtype(eps)) + dtype(decay) * param
    ratio = np.linalg.norm(param) / np.linalg.norm(update)
    outputs = {"param": param - dtype(lr) * ratio * update, "m": new_m, "v": new_v}
    outputs = {name: array.astype(dtype) for name, array in outputs.items()}
    params = {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps, "step": step}
    params["weight_decay"] = decay
    explanation = refkernels.explain("lamb", inputs, outputs, params)
    if scale == 1.0:  # one tensor is one unit of observation: no proof
        assert explanation.cause == "gradient_clipped"
        assert explanation.candidates[0].details == {"max_norm": 1.0}
    else:
        assert explanation.verdict == "rounding"
        assert explanation.cause in (None, "summation_order")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_adam_that_clips_the_gradient_first_is_proven(dtype: type) -> None:
    rng = np.random.default_rng(12)
    param, grad, m, v = (rng.standard_normal(64).astype(dtype) for _ in range(4))
    v = np.square(v)
    g = grad * (dtype(0.5) / np.linalg.norm(grad))
    new_m, new_v = m * dtype(0.875) + dtype(0.125) * g, v * dtype(0.75) + dtype(0.25) * g * g
    taken = new_m / dtype(1 - 0.875) / (np.sqrt(new_v / dtype(0.25)) + dtype(2.0**-20))
    outputs = {"param": param - dtype(2.0**-7) * taken, "m": new_m, "v": new_v}
    inputs = {"param": param, "grad": grad, "m": m, "v": v}
    params = {"lr": 2.0**-7, "beta1": 0.875, "beta2": 0.75, "eps": 2.0**-20}
    explanation = refkernels.explain("adam", inputs, outputs, params)
    assert (explanation.cause, explanation.confidence) == ("gradient_clipped", "proven")
    assert explanation.candidates[0].details == {"max_norm": 0.5}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("factor", "cause"), [(0.0, "gradient_normalised"), (0.371845903, "gradient_multiplied")]
)
def test_an_adam_that_divides_by_a_norm_first_is_proven(
    dtype: type, factor: float, cause: str
) -> None:
    """By the gradient's own norm, below 1, as NVLAMB does, or by that of all tensors together."""
    rng = np.random.default_rng(14)
    param, grad, m, v = (rng.standard_normal(64).astype(dtype) for _ in range(4))
    grad, v = grad if factor else dtype(0.01) * grad, np.square(v)
    g = grad * dtype(factor or 1.0 / np.linalg.norm(grad.astype(np.float64)))
    new_m, new_v = m * dtype(0.875) + dtype(0.125) * g, v * dtype(0.75) + dtype(0.25) * g * g
    taken = new_m / dtype(1 - 0.875) / (np.sqrt(new_v / dtype(0.25)) + dtype(2.0**-20))
    outputs = {"param": param - dtype(2.0**-7) * taken, "m": new_m, "v": new_v}
    inputs = {"param": param, "grad": grad, "m": m, "v": v}
    params = {"lr": 2.0**-7, "beta1": 0.875, "beta2": 0.75, "eps": 2.0**-20}
    explanation = refkernels.explain("adam", inputs, outputs, params)
    assert (explanation.cause, explanation.confidence) == (cause, "proven")
    details = explanation.candidates[0].details
    assert details.get("factor") == (f"{factor:.6g}" if factor else None)


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
