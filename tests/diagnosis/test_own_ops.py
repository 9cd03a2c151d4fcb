"""A user's own formula has causes for its faults, which independent NumPy code plants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import refkernels


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def softmax(s: Any, axis: int = -1) -> Any:
    e = np.exp(s - s.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def capped_attention(xp: Any, q: Any, k: Any, v: Any, *, cap: Any, scale: Any) -> Any:
    s = xp.matmul(q, xp.transpose(k, (0, 2, 1))) * scale
    s = cap * xp.tanh(s / cap)
    e = xp.exp(s - xp.pivot(s))
    return xp.matmul(e / xp.sum(e), v)


def _attention(
    q: Any, k: Any, v: Any, cut: Callable[[Any], Any] = np.tanh, scale: float = 0.35,
    axis: int = -1, keep: Any = True,
) -> Any:  # fmt: skip
    s = 2 * cut(q @ np.swapaxes(k, -1, -2) * scale / 2)
    return softmax(np.where(keep, s, -np.inf), axis) @ v


def residual_norm(xp: Any, x: Any, residual: Any, weight: Any, *, eps: Any) -> Any:
    r = x + residual
    return r * xp.rsqrt(xp.mean(xp.square(r)) + eps) * weight


def _norm(
    x: Any, residual: Any, weight: Any, times: float = 1.0, n: int = 64, outside: bool = False,
    centred: bool = False,
) -> Any:  # fmt: skip
    r = x + times * residual
    r = r - r.mean(-1, keepdims=True) if centred else r
    square = (r * r).sum(-1, keepdims=True) / n
    return r / (np.sqrt(square) + 1e-3 if outside else np.sqrt(square + 1e-3)) * weight


def partial_rotary(xp: Any, x: Any, cos: Any, sin: Any) -> Any:
    r, d = cos.shape[-1], x.shape[-1]
    a, b, rest = (xp.take(x, np.arange(*ends), -1) for ends in ((0, r), (r, 2 * r), (2 * r, d)))
    return xp.concatenate([a * cos - b * sin, b * cos + a * sin, rest], -1)


def _rotary(x: Any, cos: Any, sin: Any, first: Any, second: Any, sign: int = 1) -> Any:
    y, a, b = x.copy(), x[..., first], x[..., second]
    y[..., first], y[..., second] = a * cos - sign * b * sin, b * cos + sign * a * sin
    return y


def router(xp: Any, x: Any, weight: Any, bias: Any, *, temperature: Any) -> Any:
    s = (xp.matmul(x, xp.transpose(weight, (0, 2, 1))) + bias) / temperature
    e = xp.exp(s - xp.pivot(s))
    return e / xp.sum(e)


def _router(x: Any, weight: Any, bias: Any, by: Any = softmax, heat: float = 2.0) -> Any:
    return by((x @ np.swapaxes(weight, -1, -2) + bias) / heat)


def linear_attention(xp: Any, q: Any, k: Any, v: Any, *, eps: Any) -> Any:
    q, k = xp.exp(q), xp.exp(k)
    total = xp.matmul(q, xp.transpose(xp.sum(k, 1), (0, 2, 1))) + eps
    return xp.matmul(q, xp.matmul(xp.transpose(k, (0, 2, 1)), v)) / total


def _linear(q: Any, k: Any, v: Any, divided: bool = True, of_q: Any = np.exp) -> Any:
    q, k = of_q(q), np.exp(k)
    total = q @ np.swapaxes(k.sum(1, keepdims=True), -1, -2) + 1e-2
    return q @ (np.swapaxes(k, -1, -2) @ v) / (total if divided else 1.0)


def scan(xp: Any, x: Any, *, decay: Any) -> Any:
    states = [xp.take(x, np.array([0]), -1)]
    for t in range(1, x.shape[-1]):
        states.append(decay * states[-1] + xp.take(x, np.array([t]), -1))
    return xp.concatenate(states, -1)


def _scan(x: Any, decay: float = 0.9, lost: int = -1, before: bool = False) -> Any:
    state, states = np.zeros(len(x)), []
    for t in range(x.shape[1]):
        old = state
        state = decay * (0 if t == lost else state) + x[:, t]
        states.append(old if before else state)
    return np.stack(states, -1)


def delta_rule(xp: Any, q: Any, k: Any, v: Any, beta: Any) -> Any:
    state, results = None, []
    for t in range(q.shape[1]):
        qt, kt, vt, bt = (xp.take(a, np.array([t]), 1) for a in (q, k, v, beta))
        new = (vt if state is None else vt - xp.matmul(kt, state)) * bt
        update = xp.matmul(xp.transpose(kt, (0, 2, 1)), new)
        state = update if state is None else state + update
        results.append(xp.matmul(qt, state))
    return xp.concatenate(results, 1)


def _delta(q: Any, k: Any, v: Any, beta: Any, sign: int = -1) -> Any:
    state, results = np.zeros((2, 5, 5)), []
    for t in range(q.shape[1]):
        qt, kt, vt, bt = (a[:, t : t + 1] for a in (q, k, v, beta))
        state = state + np.swapaxes(kt, 1, 2) @ ((vt + sign * (kt @ state)) * bt)
        results.append(qt @ state)
    return np.concatenate(results, 1)


ANGLES = np.arange(10)[:, None] * 1e4 ** (-np.arange(4) / 4)
QKV = {"q": 2 * normal(2, 12, 8), "k": normal(2, 12, 8, seed=1), "v": normal(2, 12, 6, seed=2)}
NORM = {"x": normal(16, 64), "residual": normal(16, 64, seed=1), "weight": normal(64, seed=2)}
ROTARY = {"x": normal(3, 10, 12), "cos": np.cos(ANGLES).astype("f4")}
ROTARY["sin"] = np.sin(ANGLES).astype("f4")
ROUTER = {"x": normal(2, 12, 16), "weight": normal(2, 8, 16, seed=1), "bias": normal(8, seed=2)}
DELTA = {"q": normal(2, 6, 5), "k": 0.4 * normal(2, 6, 5, seed=1), "v": normal(2, 6, 5, seed=2)}
DELTA["beta"] = np.random.default_rng(3).uniform(0.2, 1, (2, 6, 1)).astype(np.float32)
ATTENTION = "q[... m d], k[... n d], v[... n e] -> y[... m e]", "m n d e"
HALVES, PAIRS = (np.arange(4), np.arange(4, 8)), (np.arange(0, 8, 2), np.arange(1, 8, 2))
OWN: dict[str, tuple[Any, Any, Any, Any, Any]] = {
    "attention": (capped_attention, *ATTENTION, {"cap": 2.0, "scale": 0.35}, QKV),
    "norm": (residual_norm, "x[... n], residual[... n], weight[n] -> y[... n]", "n", {"eps": 1e-3},
             NORM),
    "rotary": (partial_rotary, "x[... s d], cos[s r], sin[s r] -> y[... s d]", "s d r", {}, ROTARY),
    "router": (router, "x[... t d], weight[... e d], bias[e] -> y[... t e]", "t d e",
               {"temperature": 2.0}, ROUTER),
    "linear": (linear_attention, *ATTENTION, {"eps": 1e-2}, QKV),
    "scan": (scan, "x[... n] -> y[... n]", "n", {"decay": 0.9}, {"x": normal(8, 32)}),
    "delta": (delta_rule, "q[... t d], k[... t d], v[... t e], beta[... t u] -> y[... t e]",
              "t d e u", {}, DELTA),
}  # fmt: skip
FAULTS: dict[tuple[str, str], Callable[..., Any]] = {
    ("attention", "function_missing"): lambda **a: _attention(**a, cut=lambda s: s),
    ("attention", "other_function"): lambda **a: _attention(**a, cut=lambda s: np.clip(s, -1, 1)),
    ("attention", "param_differs"): lambda **a: _attention(**a, scale=0.5),
    ("attention", "other_axis"): lambda **a: _attention(**a, axis=-2),
    ("attention", "mask_added"): lambda **a: _attention(**a, keep=np.tri(12, dtype=bool)),
    ("norm", "term_missing"): lambda **a: _norm(**a, times=0.0),
    ("norm", "term_doubled"): lambda **a: _norm(**a, times=2.0),
    ("norm", "divisor_differs"): lambda **a: _norm(**a, n=63),
    ("norm", "eps_outside_sqrt"): lambda **a: _norm(**a, outside=True),
    ("norm", "mean_taken_off"): lambda **a: _norm(**a, centred=True),
    ("norm", "weight_plus_one"): lambda **a: _norm(**{**a, "weight": 1 + a["weight"]}),
    ("rotary", "sign_wrong"): lambda **a: _rotary(**a, first=HALVES[0], second=HALVES[1], sign=-1),
    ("rotary", "other_layout"): lambda **a: _rotary(**a, first=PAIRS[0], second=PAIRS[1]),
    ("rotary", "inputs_exchanged"): lambda x, cos, sin: _rotary(x, sin, cos, *HALVES),
    ("router", "other_function"): lambda **a: _router(**a, by=lambda s: 1 / (1 + np.exp(-s))),
    ("router", "param_differs"): lambda **a: _router(**a, heat=1.0),
    ("router", "first_for_all"): lambda **a: np.repeat(_router(**a)[:, :1], 12, 1),
    ("linear", "factor_missing"): lambda **a: _linear(**a, divided=False),
    ("linear", "function_missing"): lambda **a: _linear(**a, of_q=lambda q: q),
    ("scan", "term_missing"): lambda **a: _scan(**a, lost=16),
    ("scan", "param_differs"): lambda **a: _scan(**a, decay=0.8),
    ("scan", "output_shifted"): lambda **a: _scan(**a, before=True),
    ("scan", "other_layout"): lambda x: _scan(x[:, ::-1])[:, ::-1],
    ("delta", "term_missing"): lambda **a: _delta(**a, sign=0),
    ("delta", "sign_wrong"): lambda **a: _delta(**a, sign=1),
}


@pytest.mark.parametrize(("name", "cause"), FAULTS)
def test_a_fault_of_an_own_op_is_proven(name: str, cause: str) -> None:
    formula, signature, coupled, params, inputs = OWN[name]
    own = refkernels.oracle(formula, signature, coupled, params=params)
    wide = {key: array.astype(np.float64) for key, array in inputs.items()}
    wrong = np.asarray(FAULTS[name, cause](**wide)).astype(np.float32)
    found = refkernels.explain(own.op, inputs, {"y": wrong})
    assert (found.cause, found.confidence) == (cause, "proven")


def test_a_constant_that_is_no_number_is_not_rounded() -> None:
    formula = lambda xp, x: xp.where(x < 9, xp.exp(x), x * xp.log(xp.number(-1)))  # noqa: E731
    op, x = refkernels.oracle(formula, "x[... k] -> y[... k]").op, normal(4, 40)
    assert refkernels.explain(op, {"x": x}, {"y": np.cbrt(x)}).verdict == "exceeds_bound"
