"""A user's own formula has causes for its faults, which independent NumPy code plants."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import planting
import pytest
from numpy_kernels import attention, gelu_tanh, layernorm, normal, normed, rms_norm, silu, softmax

import refkernels

PLANTED: list[planting.Planted] = []


def of(
    formula: Any, signature: str, coupled: str, inputs: Mapping[str, Any], **params: float
) -> Any:
    own = refkernels.oracle(formula, signature, coupled, params=params)
    return planting.Asked(PLANTED, own.op, inputs, float)


# --- attention whose scores have a soft cap, and attention by features ----------------------------

QKV = {"q": normal(2, 12, 8, scale=2), "k": normal(2, 12, 8, seed=1), "v": normal(2, 12, 6, seed=2)}
ATTENTION = "q[... m d], k[... n d], v[... n e] -> y[... m e]", "m n d e"


def capped_attention(xp: Any, q: Any, k: Any, v: Any, *, cap: Any, scale: Any) -> Any:
    s = xp.matmul(q, xp.transpose(k, (0, 2, 1))) * scale
    s = cap * xp.tanh(s / cap)
    e = xp.exp(s - xp.pivot(s))
    return xp.matmul(e / xp.sum(e), v)


def clipped(q: Any, k: Any, v: Any) -> Any:
    return softmax(np.clip(q @ k.swapaxes(-1, -2) * 0.35, -2, 2)) @ v


capped = partial(attention, cap=2.0, scale=0.35)
fault = of(capped_attention, *ATTENTION, QKV, cap=2.0, scale=0.35)
fault(None, capped)
fault("function_missing", partial(attention, scale=0.35))
fault("other_function", clipped)
fault("param_differs", partial(attention, cap=2.0, scale=0.5))
fault("other_axis", partial(capped, axis=-2))
fault("mask_added", partial(capped, keep=np.tri(12, dtype=bool)))


def linear_attention(xp: Any, q: Any, k: Any, v: Any, *, eps: Any) -> Any:
    q, k = xp.exp(q), xp.exp(k)
    total = xp.matmul(q, xp.transpose(xp.sum(k, 1), (0, 2, 1))) + eps
    return xp.matmul(q, xp.matmul(xp.transpose(k, (0, 2, 1)), v)) / total


def by_features(q: Any, k: Any, v: Any, divided: bool = True, of_q: Any = np.exp) -> Any:
    q, k = of_q(q), np.exp(k)
    total = q @ k.sum(1, keepdims=True).swapaxes(-1, -2) + q.dtype.type(1e-2)
    return q @ (k.swapaxes(-1, -2) @ v) / (total if divided else 1)


fault = of(linear_attention, *ATTENTION, QKV, eps=1e-2)
fault(None, by_features)
fault("factor_missing", partial(by_features, divided=False))
fault("function_missing", partial(by_features, of_q=lambda q: q))

# --- norms ----------------------------------------------------------------------------------------

SUMMED = {"x": normal(16, 64), "residual": normal(16, 64, seed=1), "weight": normal(64, seed=2)}
OWN = "x[... n], residual[... n], weight[n] -> y[... n]"
ROWS = "x[... n] -> y[... n]", "n", {"x": normal(12, 32)}


def residual_norm(xp: Any, x: Any, residual: Any, weight: Any, *, eps: Any) -> Any:
    r = x + residual
    return r * xp.rsqrt(xp.mean(xp.square(r)) + eps) * weight


def of_sum(x: Any, residual: Any, weight: Any, times: float = 1.0, **how: Any) -> Any:
    return rms_norm(x + x.dtype.type(times) * residual, weight, **how)


def of_part(x: Any, residual: Any, weight: Any, part: Any, root: Any = np.sqrt) -> Any:
    """By the mean square of a part of the rows, over all of their length."""
    square = np.square(part(x, residual)).sum(-1, keepdims=True) / 64
    return (x + residual) / root(square + 1e-3) * weight


fault = of(residual_norm, OWN, "n", SUMMED, eps=1e-3)
fault(None, partial(of_sum, eps=1e-3))
fault("term_missing", partial(of_sum, times=0.0, eps=1e-3))
fault("term_doubled", partial(of_sum, times=2.0, eps=1e-3))
fault("divisor_differs", partial(of_sum, ddof=1, eps=1e-3))
fault("eps_outside_sqrt", partial(of_sum, outside=True, eps=1e-3))
fault("mean_taken_off", lambda x, residual, weight: layernorm(x + residual, weight, eps=1e-3))
fault("weight_plus_one", lambda x, residual, weight: of_sum(x, residual, 1 + weight, eps=1e-3))
fault("factor_missing", lambda x, residual, weight: of_sum(x, residual, 1, eps=1e-3))
fault("factor_twice", partial(of_part, part=np.add, root=lambda mean: mean))
fault("dropped_tail", partial(of_part, part=lambda x, residual: (x + residual)[:, :-5]))


def norm_and_gelu(xp: Any, x: Any) -> Any:
    d = x - xp.mean(x)
    h = d / xp.sqrt(xp.mean(d * d) + xp.number(1e-5))
    return h * (1 + xp.erf(h / xp.sqrt(xp.number(2)))) / 2


fault = of(norm_and_gelu, *ROWS)
fault("tanh_gelu", lambda x: gelu_tanh(normed(x)), other="gelu_tanh")
fault("function_for_another", normed, other="x")


fault = of(lambda xp, x: xp.mean(x) * 3, "x[... n] -> y[...]", "n", {"x": normal(40, 16)})
fault("max_for_mean", lambda x: 3 * x.max(-1), taken="max")

# --- softmax: of a router's scores, and by blocks of 8 --------------------------------------------

ROUTER = {"x": normal(2, 12, 16), "weight": normal(2, 8, 16, seed=1), "bias": normal(8, seed=2)}


def router(xp: Any, x: Any, weight: Any, bias: Any, *, temperature: Any) -> Any:
    s = (xp.matmul(x, xp.transpose(weight, (0, 2, 1))) + bias) / temperature
    e = xp.exp(s - xp.pivot(s))
    return e / xp.sum(e)


def shares(x: Any, weight: Any, bias: Any, by: Any = softmax, heat: int = 2) -> Any:
    return by((x @ weight.swapaxes(-1, -2) + bias) / heat)


SCORES = "x[... t d], weight[... e d], bias[e] -> y[... t e]"
fault = of(router, SCORES, "t d e", ROUTER, temperature=2.0)
fault(None, shares)
fault("other_function", partial(shares, by=lambda s: 1 / (1 + np.exp(-s))))
fault("param_differs", partial(shares, heat=1))
fault("first_for_all", lambda **a: np.repeat(shares(**a)[:, :1], 12, 1))


def plain_softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x))
    return e / xp.sum(e)


def by_blocks(x: Any, way: str) -> Any:
    """Each block relative to its `own` maximum; or to the largest so far, and the sum to that of
    all, but the exponents are not rescaled when the maximum grows, or not `once`, at element 16."""
    blocks = x.reshape(len(x), -1, 8)
    own = blocks.max(-1, keepdims=True)
    top = np.maximum.accumulate(own, axis=1)
    grown = (np.arange(top.shape[1])[:, None] < 2) * (top[:, 2:3] - top[:, 1:2])
    e = np.exp(blocks - {"own": own, "once": top[:, -1:] - grown}.get(way, top)).reshape(x.shape)
    return e / (e if way == "own" else np.exp(x - x.max(-1, keepdims=True))).sum(-1, keepdims=True)


fault = of(plain_softmax, *ROWS)
fault("shift_by_blocks", partial(by_blocks, way=""), block=8)
fault("shift_of_each_block", partial(by_blocks, way="own"), block=8)
fault("not_rescaled_once", partial(by_blocks, way="once"), start=16)

# --- rotations, recurrences, elementwise ----------------------------------------------------------

ANGLES = np.arange(10)[:, None] * 1e4 ** (-np.arange(4) / 4)
ROTARY = {"x": normal(3, 10, 12), **{f.__name__: f(ANGLES).astype("f4") for f in (np.cos, np.sin)}}
DELTA = {name: normal(2, 6, 5, seed=seed) for seed, name in enumerate("qkv")}
DELTA["k"] *= np.float32(0.4)
DELTA["beta"] = np.random.default_rng(3).uniform(0.2, 1, (2, 6, 1)).astype(np.float32)
PAIR = "x[...], y[...] -> z[...]", "", {"x": normal(400), "y": normal(400, seed=1)}


def partial_rotary(xp: Any, x: Any, cos: Any, sin: Any) -> Any:
    r, d = cos.shape[-1], x.shape[-1]
    a, b, rest = (xp.take(x, np.arange(*ends), -1) for ends in ((0, r), (r, 2 * r), (2 * r, d)))
    return xp.concatenate([a * cos - b * sin, b * cos + a * sin, rest], -1)


def rotated(x: Any, cos: Any, sin: Any, sign: int = 1, pairs: bool = False) -> Any:
    first, second = (np.s_[:8:2], np.s_[1:8:2]) if pairs else (np.s_[:4], np.s_[4:8])
    y, a, b = x.copy(), x[..., first], x[..., second]
    y[..., first], y[..., second] = a * cos - sign * b * sin, b * cos + sign * a * sin
    return y


fault = of(partial_rotary, "x[... s d], cos[s r], sin[s r] -> y[... s d]", "s d r", ROTARY)
fault(None, rotated)
fault("sign_wrong", partial(rotated, sign=-1))
fault("other_layout", partial(rotated, pairs=True))
fault("inputs_exchanged", lambda x, cos, sin: rotated(x, sin, cos))


def scan(xp: Any, x: Any, *, decay: Any) -> Any:
    states = [xp.take(x, np.array([0]), -1)]
    for t in range(1, x.shape[-1]):
        states.append(decay * states[-1] + xp.take(x, np.array([t]), -1))
    return xp.concatenate(states, -1)


def scanned(x: Any, decay: float = 0.9, lost: int = -1, before: bool = False) -> Any:
    state, states = np.zeros(len(x), x.dtype), []
    for t in range(x.shape[1]):
        old = state
        state = decay * (0 if t == lost else state) + x[:, t]
        states.append(old if before else state)
    return np.stack(states, -1)


fault = of(scan, *ROWS[:2], {"x": normal(8, 32)}, decay=0.9)
fault(None, scanned)
fault("term_missing", partial(scanned, lost=16))
fault("param_differs", partial(scanned, decay=0.8))
fault("output_shifted", partial(scanned, before=True))
fault("other_layout", lambda x: scanned(x[:, ::-1])[:, ::-1])


def delta_rule(xp: Any, q: Any, k: Any, v: Any, beta: Any) -> Any:
    state, results = None, []
    for t in range(q.shape[1]):
        qt, kt, vt, bt = (xp.take(a, np.array([t]), 1) for a in (q, k, v, beta))
        new = (vt if state is None else vt - xp.matmul(kt, state)) * bt
        update = xp.matmul(xp.transpose(kt, (0, 2, 1)), new)
        state = update if state is None else state + update
        results.append(xp.matmul(qt, state))
    return xp.concatenate(results, 1)


def updated(q: Any, k: Any, v: Any, beta: Any, sign: int = -1) -> Any:
    state, results = np.zeros((2, 5, 5), q.dtype), []
    for t in range(q.shape[1]):
        qt, kt, vt, bt = (a[:, t : t + 1] for a in (q, k, v, beta))
        state = state + kt.swapaxes(1, 2) @ ((vt + sign * (kt @ state)) * bt)
        results.append(qt @ state)
    return np.concatenate(results, 1)


fault = of(
    delta_rule, "q[... t d], k[... t d], v[... t e], beta[... t u] -> y[... t e]", "t d e u", DELTA
)
fault(None, updated)
fault("term_missing", partial(updated, sign=0))
fault("sign_wrong", partial(updated, sign=1))


def gated(xp: Any, x: Any, y: Any) -> Any:
    return x / (1 + xp.exp(-x)) * (y * y)


fault = of(gated, *PAIR)
fault(None, lambda x, y: silu(x) * y * y)
fault("factor_missing", lambda x, y: silu(x) * y, part="y")
fault("function_for_another", lambda x, y: gelu_tanh(x) * y * y, other="gelu_tanh")
fault("complement_taken", lambda x, y: silu(x) * (1 - y) ** 2, part="y")
fault = of(lambda xp, x, y: x / (1 + xp.exp(-y)) + y, *PAIR)
fault("applied_elsewhere", lambda x, y: (x + y) / (1 + np.exp(-y)))
fault = of(lambda xp, x, y: (xp.exp(x) + y) * x, *PAIR)
fault("applied_elsewhere", lambda x, y: np.exp(x) + y * x)


# --- choices, losses, halves -----------------------------------------------------------------

TERMS = "x[... n], y[... n] -> z[...]", "n", {"x": normal(40, 12), "y": normal(40, 12, seed=1)}
SHARES = *PAIR[:2], {name: 1 / (1 + np.exp(a)) for name, a in PAIR[2].items()}
KEPT = (abs(normal(40, 12, seed=1)) > np.arange(12) / 9).astype("f4")  # all of the first
HALVES = "x[... n], y[... m] -> z[... m]", "n m", {"x": normal(9, 16), "y": normal(9, 8)}

fault = of(lambda xp, x, y, *, slope: xp.where(x < 0, x * slope, x) * y, *PAIR, slope=0.2)
fault(None, lambda x, y: np.maximum(x, 0.2 * x) * y)
fault("function_for_another", lambda x, y: silu(x) * y, other="silu")
fault = of(lambda xp, x, y: xp.square(xp.maximum(x, xp.number(0))) * y, *PAIR)
fault("function_for_another", lambda x, y: np.maximum(x, 0.01 * x) ** 2 * y, function="max(x, 0)")
fault("other_function", lambda x, y: np.maximum(x, 0) ** 3 * y, other="x³")
fault = of(lambda xp, x, y, *, c: xp.maximum(xp.clip(x, -c, 1 + c), y), *PAIR, c=0.2)
fault("other_function", lambda x, y: np.minimum(x.clip(-0.2, 1.2), y), function="max", other="min")
fault("constant_differs", lambda x, y: np.maximum(x.clip(-0.2, 1.28), y), part="-(1 + c)")
fault = of(lambda xp, x, y: xp.mean(xp.maximum(x - y, xp.number(0))), *TERMS)
fault("divisor_differs", lambda x, y: (x - y).clip(0).sum(-1) / (x > y).sum(-1), by="count")
fault("other_function", lambda x, y: ((x - y).clip(0) ** 2).mean(-1), other="max²")
fault = of(lambda xp, x, y: xp.sum(x) / xp.sum(y), *TERMS[:2], {"x": TERMS[2]["x"], "y": KEPT})
fault("constant_added", lambda x, y: x.sum(-1) / (y.sum(-1) + 1), value=1.0)  # as its first is
fault("other_function", lambda x, y: np.square(x).sum(-1) / y.sum(-1), other="sum(x²)")
fault = of(lambda xp, x, y: y * (xp.log(y) - x), *SHARES)
fault("added_to_argument", lambda x, y: y * (np.log(y + 0.01) - x), value=0.01)
fault = of(lambda xp, x, y: xp.sqrt(1 - y) * x + y, *SHARES)
fault("factor_twice", lambda x, y: (1 - y) * x + y)
fault("input_added", lambda x, y: np.sqrt(1 - y) * x + y + x, part="x")
fault = of(lambda xp, x, y: xp.exp(x) * 3 + y, *PAIR)
fault("applied_elsewhere", lambda x, y: np.exp(x) + y * 3, at="y")
k = np.arange(8)
fault = of(lambda xp, x, y: xp.take(x, k, -1) * xp.exp(xp.take(x, k + 8, -1)) + y, *HALVES)
fault("index_differs", lambda x, y: x[:, 8:] * np.exp(x[:, :8]) + y, how="(i + 8) % 16")


@planting.each(PLANTED)
def test_a_fault_of_an_own_op_is_proven_and_a_right_kernel_is_not_blamed(
    planted: planting.Planted,
) -> None:
    planted.check()


def test_a_constant_that_is_no_number_is_not_rounded() -> None:
    formula = lambda xp, x: xp.where(x < 9, xp.exp(x), x * xp.log(xp.number(-1)))  # noqa: E731
    op, x = refkernels.oracle(formula, "x[... k] -> y[... k]").op, normal(4, 40)
    assert refkernels.explain(op, {"x": x}, {"y": np.cbrt(x)}).verdict == "exceeds_bound"


def of_norm(kernel: Any) -> Any:
    """What is said of a residual norm where eps = 0.1 is asked for."""
    own = refkernels.oracle(residual_norm, OWN, "n", params={"eps": 0.1})
    return planting.Planted(own.op, SUMMED, {}, float, "", kernel, {}).explained()


@pytest.mark.parametrize("eps", [1e-3, 0.03])
def test_two_faults_at_once_are_both_named(eps: float) -> None:
    """The weight left out, and another eps: a port's two mistakes."""
    found = of_norm(lambda x, residual, weight: of_sum(x, residual, 1, eps=eps))
    assert {found.cause, found.candidates[0].details["with"]} == {"factor_missing", "eps_differs"}
    assert found.confidence == "proven"
    assert "uses eps" in found.summary
    assert "leaves out the factor or divisor weight" in found.summary


def test_two_pairs_that_are_one_function_are_not_told_apart() -> None:
    """A norm does not depend on a factor: x with eps is 2 x with 4 eps, so that a residual that was
    left out and one that was read twice are the same but for eps."""
    found = of_norm(partial(of_sum, times=0.0, eps=1e-3))
    assert found.confidence == "consistent"
    for said in ("reads x in place of residual", "leaves out the term residual"):
        assert said in found.summary
    for eps in ("0.004", "0.001"):
        assert f"and uses eps = {eps}" in found.summary
