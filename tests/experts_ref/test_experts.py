"""Experts: the usual code in NumPy, choices that rounding decides, sums that are known."""

from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.embedding_ref import embedding
from refkernels.experts_ref import combine_experts, grouped_matmul, router
from refkernels.testing import assert_kernel

RNG = np.random.default_rng(42)
X = RNG.standard_normal((24, 12)).astype(np.float32)
BIAS = RNG.uniform(-0.3, 0.3, 12).astype(np.float32)


def written(kept: int, biased: bool = False) -> Any:
    """DeepSeek-V3's router as users write it, without its scale."""
    s = 1 / (1 + np.exp(-X))
    inside = (s + BIAS).reshape(24, 4, 3)
    groups = np.argsort(-np.sort(inside, -1)[..., 1:].sum(-1), -1)[:, :kept]
    outside = (groups[..., None] != np.arange(4)).all(axis=1)
    masked = np.where(outside[..., None], -np.inf, inside)
    index = np.argsort(-masked.reshape(24, 12), -1)[:, :3]
    w, y = np.take_along_axis(s + BIAS if biased else s, index, -1), np.zeros_like(X)
    np.put_along_axis(y, index, w / w.sum(-1, keepdims=True), -1)
    return y


ALL = {"k": 3, "scores": "sigmoid", "renormalise": True}
V3 = {**ALL, "groups": 4, "groups_kept": 2, "best": 2}


@pytest.mark.parametrize(
    ("cause", "right", "wrong", "params"),
    [
        ("bias_in_weights", {"kept": 4}, {"kept": 4, "biased": True}, ALL),
        ("group_limit_ignored", {"kept": 2}, {"kept": 4}, V3),
    ],
)
def test_the_usual_router_is_right_and_its_slips_are_named(
    cause: str, right: Any, wrong: Any, params: Any
) -> None:
    inputs = {"logits": X, "bias": BIAS}
    assert_kernel("router", inputs, written(**right), params)
    assert refkernels.explain("router", inputs, written(**wrong), params).cause == cause


def test_either_of_two_experts_whose_rounded_scores_are_equal_may_be_chosen() -> None:
    """e^(2^-26) is 1 in float32: the second expert's score is larger, and rounds to the first's."""
    x = np.float32([[0.0, 2.0**-26, -9.0]])
    exact = np.asarray(router(x))
    assert exact[0, 0] == 0.0 < exact[0, 1]
    for weights in (exact, exact[:, [1, 0, 2]]):
        assert_kernel("router", {"logits": x}, weights.astype(np.float32))
    x[0, 1] = 2.0**-16
    with pytest.raises(AssertionError):
        assert_kernel("router", {"logits": x}, exact[:, [1, 0, 2]].astype(np.float32))


def test_tokens_go_to_their_experts_and_come_back() -> None:
    tokens, matrices = (np.round(4.0 * RNG.standard_normal(s)) for s in ((7, 4), (3, 4, 5)))
    chosen, weights = RNG.integers(0, 3, (7, 2)), np.round(4.0 * RNG.standard_normal((7, 2)))
    order = np.argsort(chosen.reshape(-1), kind="stable")
    rows = np.argsort(order).reshape(7, 2)
    rows[2, 1] = -1
    sent = np.asarray(embedding(tokens, order // 2))
    answers = np.asarray(grouped_matmul(sent, matrices, chosen.reshape(-1)[order]))
    y = np.asarray(combine_experts(answers, rows, weights))
    weights[2, 1] = 0.0
    np.testing.assert_array_equal(y, np.einsum("tk,td,tkde->te", weights, tokens, matrices[chosen]))
