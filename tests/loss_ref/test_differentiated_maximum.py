"""Gradients of x - logsumexp(x) that also pass through the maximum, and BERT's loss with them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import explain

Array = npt.NDArray[Any]
CAUSE = "maximum_differentiated"
EPS = 1e-5
RNG = np.random.default_rng(3)
X = 0.1 * RNG.standard_normal((20, 200))
LABELS = RNG.integers(0, 200, 20)
WEIGHTS = (RNG.random(20) < 0.8).astype(np.float64)


def gradient(x: Array, cotangents: Array, through_maximum: bool) -> Array:
    """Of -Σ g y over each row's label. Along the row the shares are added one by one."""
    dy = -cotangents[:, None] * np.eye(x.shape[1])[LABELS]
    top = x.max(-1, keepdims=True)
    e, total = np.exp(x - top), dy.sum(-1, keepdims=True)
    shares = e / e.sum(-1, keepdims=True) * total
    left = np.add.accumulate(shares, axis=-1)[:, -1:] - total
    return dy - shares + np.where(through_maximum & (x == top), left, 0.0)


def masked(eps: float, through_maximum: bool) -> Any:
    """BERT's loss, backward."""
    dx = gradient(X, WEIGHTS / (WEIGHTS.sum() + eps), through_maximum)
    inputs = {"x": X, "target": LABELS, "weights": WEIGHTS, "dloss": np.float64(1.0)}
    return explain("masked_lm_loss", inputs, {"dx": dx}, {"eps": EPS}, "backward")


def test_a_gradient_through_the_maximum_is_named() -> None:
    inputs = {"x": X, "target": LABELS, "dloss": np.ones(20)}
    for through_maximum in (True, False):
        dx = gradient(X, np.ones(20), through_maximum)
        explanation = explain(
            "cross_entropy", inputs, {"dx": dx}, {"reduction": "none"}, "backward"
        )
        if through_maximum:
            assert explanation.cause == CAUSE
        else:
            assert (explanation.verdict, explanation.cause) == ("rounding", None)


def test_it_is_named_in_berts_loss() -> None:
    assert masked(EPS, True).cause == CAUSE


def test_it_does_not_hide_an_eps_in_float32() -> None:
    """MindSpore's float64 BERT loss: its eps is a Python number, which becomes float32."""
    narrow = float(np.float32(EPS))
    explanation = masked(narrow, True)
    assert explanation.verdict == "exceeds_bound"
    assert (explanation.cause, explanation.confidence) == ("eps_rounded", "proven")
    best = explanation.candidates[0]
    assert (best.details["eps"], best.details["with"]) == (narrow, CAUSE)
    assert "(with maximum_differentiated)" in explanation.summary


def test_an_eps_in_float32_is_more_than_a_factor_near_1() -> None:
    explanation = masked(float(np.float32(EPS)), False)
    assert (explanation.cause, explanation.confidence) == ("eps_rounded", "proven")
    assert "with" not in explanation.candidates[0].details


def test_a_right_loss_has_no_cause() -> None:
    explanation = masked(EPS, False)
    assert explanation.verdict == "rounding"
    assert explanation.cause in (None, "summation_order")
