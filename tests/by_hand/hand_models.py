"""Ops of models by their definitions: experts, sequences and weighted slopes."""

from typing import Any

import numpy as np
from hand_numbers import Numbers, exp, number
from hand_rows import logsumexp, softmax
from mpmath import mp


def prelu(x: Numbers, weight: Numbers, axis: int = -1) -> Any:
    shape = np.ones(x.ndim, int)
    if weight.size > 1:
        shape[axis] = -1
    return np.where(x > 0, x, weight.reshape(shape if weight.size > 1 else ()) * x)


def gated_delta_rule(
    q: Numbers, k: Numbers, v: Numbers, beta: Numbers, g: Any = None, initial_state: Any = None,
    scale: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """By the matrices (1 - b k kᵀ) a."""
    scale = 1 / mp.sqrt(q.shape[-1]) if scale is None else number(scale)
    state = k[..., 0, :, None] * v[..., 0, None, :] * 0
    state, y = state if initial_state is None else initial_state, []
    for t in range(q.shape[-2]):
        key, b = k[..., t, :, None], beta[..., t, None, None]
        state = state if g is None else exp(g[..., t])[..., None, None] * state
        state = state - b * key * (key * state).sum(-2, keepdims=True)
        state = state + b * key * v[..., t, None, :]
        y.append((q[..., t, :, None] * state).sum(-2) * scale)
    return {"y": np.stack(y, -2), "state": state}


def load_balancing_loss(logits: Numbers, k: int = 1, scale: float = 1.0) -> Any:
    rows = logits.reshape(-1, logits.shape[-1])
    p, taken = softmax(rows), rows * 0
    for row, own in enumerate(rows):
        taken[row][sorted(range(len(own)), key=lambda i, of=own: -of[i])[:k]] = mp.mpf(1)
    tokens, n = rows.shape
    return number(scale) * n * (taken.sum(0) * p.sum(0)).sum() / tokens**2


def router_z_loss(logits: Numbers, scale: float = 1.0) -> Any:
    rows = logsumexp(logits.reshape(-1, logits.shape[-1]))
    return number(scale) * (rows**2).sum() / len(rows)


MODELS = {
    "prelu": prelu, "gated_delta_rule": gated_delta_rule,
    "load_balancing_loss": load_balancing_loss, "router_z_loss": router_z_loss,
}  # fmt: skip
