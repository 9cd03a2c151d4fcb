"""Causes that frameworks' sources suggest: each rebuilt in NumPy, beside the right kernel."""

import numpy as np
import pytest

import refkernels


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
    assert (explanation.cause, explanation.confidence) == ("smoothing_class_count", "proven")
    assert explanation.candidates[0].details == {"classes": spread}
    assert f"over {spread} classes" in explanation.summary
    right = -(1 - e) * own - e / dtype(classes) * y.sum(-1)
    explanation = refkernels.explain("cross_entropy", inputs, {"loss": right}, params)
    assert explanation.cause in (None, "summation_order")


@pytest.mark.parametrize("eps", [1e-5, float(np.float32(1e-5))])
def test_an_rms_norm_that_rounds_its_last_factor_is_proven(eps: float) -> None:
    """OneFlow's RMSLayerNorm in float64, with and without eps in float32."""
    rng = np.random.default_rng(8)
    x, weight = rng.standard_normal((6, 32)), rng.uniform(0.5, 2.0, 32)
    r = 1.0 / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps)
    y = x.astype(np.float32).astype(np.float64) * r * weight
    inputs, params = {"x": x, "weight": weight}, {"eps": 1e-5}
    explanation = refkernels.explain("rms_norm", inputs, {"y": y}, params)
    assert (explanation.cause, explanation.confidence) == ("float32_factor", "proven")
    assert explanation.candidates[0].details == ({} if eps == 1e-5 else {"eps": eps})
    explanation = refkernels.explain("rms_norm", inputs, {"y": x * r * weight}, {"eps": eps})
    assert explanation.cause in (None, "summation_order")
