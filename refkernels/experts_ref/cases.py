"""The inputs on which ops of experts are measured, by regime; appended, never changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.ops.cases import drawn, listed, whole, with_specials

MIXTRAL = {"k": 2, "renormalise": True}
DEEPSEEK = {
    "k": 4, "scores": "sigmoid", "groups": 4, "groups_kept": 2, "best": 2, "renormalise": True,
    "scale": 2.5,
}  # fmt: skip


def _logits(*shape: int, size: float = 1.0, **bias: Any) -> Any:
    return drawn(dweights=shape, logits=shape, logits_size=size, **bias)


def _tied(rng: np.random.Generator) -> Any:
    return rng.integers(-2, 3, (9, 8)).astype(float)


ROUTER = listed(
    "router",
    ("experts", {"n": 8, "k": 2}, _logits(37, 8), {"k": 2}),
    ("experts", {"n": 128, "k": 8}, _logits(5, 128), {"k": 8}),
    ("renormalised", {"n": 8}, _logits(9, 8), MIXTRAL),
    ("groups", {"groups": 4}, _logits(9, 32, bias=(32,), bias_size=0.1), DEEPSEEK),
    ("groups", {"groups": 3, "kept": 1}, _logits(9, 12), {"groups": 3, "groups_kept": 1}),
    ("size", {"size": 20}, _logits(9, 8, size=20.0), MIXTRAL),
    ("ties", {"n": 8}, drawn(dweights=(9, 8), logits=_tied), {"k": 2}),
    ("specials", {}, with_specials(_logits(5, 8), logits=-np.inf)),
    ("invariance", {"rows": 37}, _logits(37, 8), MIXTRAL),
)  # fmt: skip


def _grouped(m: int, k: int, n: int, experts: Any, g: int = 3) -> Any:
    return drawn(dc=(m, n), a=(m, k), b=(g, k, n), experts=experts)


GROUPED = listed(
    "grouped_matmul",
    ("sorted", {"experts": 3}, _grouped(9, 16, 5, lambda rng: np.repeat([0, 2], [4, 5]))),
    ("mixed", {"experts": 8}, _grouped(40, 8, 7, whole(0, 8, 40), 8)),
    ("terms", {"k": 512}, _grouped(6, 512, 3, whole(0, 3, 6))),
    ("empty", {"rows": 3}, _grouped(9, 16, 5, lambda rng: np.repeat([0, 2, -1], 3))),
    ("invariance", {"rows": 37}, _grouped(37, 16, 5, whole(0, 3, 37))),
)  # fmt: skip


def _combined(t: int, k: int, d: int, rows: int, least: int = 0, **weights: Any) -> Any:
    return drawn(dy=(t, d), x=(rows, d), rows=whole(least, rows, (t, k)), **weights)


COMBINE = listed(
    "combine_experts",
    ("experts", {"k": 8}, _combined(5, 8, 16, 40, weights=(5, 8))),
    ("sum", {"k": 2}, _combined(9, 2, 16, 18)),
    ("dropped", {"k": 4}, _combined(9, 4, 5, 4, -1, weights=(9, 4))),
    ("size", {"size": 100}, _combined(9, 2, 16, 18, weights=(9, 2), weights_size=100.0)),
    ("invariance", {"rows": 37}, _combined(37, 2, 8, 74, weights=(37, 2))),
)  # fmt: skip


def _tokens(*shape: int, size: float = 1.0) -> Any:
    return drawn(dloss=(), logits=shape, logits_size=size)


BALANCE = listed(
    "load_balancing_loss",
    ("experts", {"n": 8, "k": 2}, _tokens(37, 8), {"k": 2}),
    ("scale", {"k": 8}, _tokens(3, 17, 64), {"k": 8, "scale": 0.125}),
    ("size", {"size": 20}, _tokens(9, 8, size=20.0)),
    ("specials", {}, with_specials(_tokens(5, 8), logits=-np.inf)),
)
Z_LOSS = listed(
    "router_z_loss",
    ("experts", {"n": 8}, _tokens(37, 8)),
    ("scale", {"n": 64}, _tokens(3, 17, 64), {"scale": 1e-3}),
    ("size", {"size": 100}, _tokens(9, 8, size=100.0)),
    ("specials", {}, with_specials(_tokens(5, 8), logits=-np.inf)),
)
