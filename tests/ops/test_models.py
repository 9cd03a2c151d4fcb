"""Ops of today's models: the usual code in NumPy is right, and its slips are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from refkernels import registry
from refkernels.arithmetic import formats

FLOAT32 = formats.get("float32")
RNG = np.random.default_rng(42)


def drawn(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def prelu(x: Any, weight: Any, slope: int = 1) -> Any:
    return np.where(x > 0, x, weight[:, None] ** slope * x)


def delta(q: Any, k: Any, v: Any, beta: Any, g: Any, decay_after: bool = False) -> Any:
    state, y = np.zeros((4, 3), np.float32), []
    for t in range(len(q)):
        state = state if decay_after else np.exp(g[t]) * state
        state = state + np.outer(k[t], beta[t] * (v[t] - k[t] @ state))
        state = np.exp(g[t]) * state if decay_after else state
        y.append(q[t] @ state / np.float32(2))
    return {"y": np.array(y), "state": state}


def balance(logits: Any, size: int = 8) -> Any:
    p = softmax(logits)
    taken = np.argsort(-p, -1)[:, :2]
    share = np.bincount(taken.reshape(-1), minlength=8).astype(np.float32) / len(p)
    return np.float32(size) * (share * p.mean(0)).sum()


def z_loss(logits: Any, power: int = 2) -> Any:
    return (np.log(np.exp(logits).sum(-1)) ** power).mean()


def cumulative(x: Any, shifted: bool = True) -> Any:
    y = np.logaddexp.accumulate(x, -1)
    return y if shifted else np.log(np.cumsum(np.exp(x - x.max(-1, keepdims=True)), -1))


def sampled(x: Any, inclusive: bool = False) -> Any:
    order = np.argsort(-x, -1)
    p = softmax(np.take_along_axis(x, order, -1))
    before = np.cumsum(p, -1) - (0 if inclusive else p)
    kept = np.where(before < 0.75, p, 0)
    y = np.empty_like(x)
    np.put_along_axis(y, order, kept / kept.sum(-1, keepdims=True), -1)
    return y


def weighed(x: Any, g: Any, power: float = 0.5) -> Any:
    return x * (g / (x * x).sum(-1) ** np.float32(power))[:, None]


def spectral(x: Any, u: Any, normalised: bool = True) -> Any:
    v = u @ x
    v = v / np.linalg.norm(v) if normalised else v
    u = x @ v
    u = u / np.linalg.norm(u)
    sigma = u @ x @ v
    return {"y": x / sigma, "sigma": sigma}


def transformed(x: Any, sign: int = 1) -> Any:
    z = np.fft.fft(x[..., 0] + 1j * sign * x[..., 1])
    return np.stack([z.real, z.imag], -1).astype(np.float32)


def halved(x: Any, first: int = 31) -> Any:
    return transformed(np.stack([x, 0 * x], -1))[:, np.arange(31) % first]


def joined(x: Any, n: int = 60) -> Any:
    return np.fft.irfft(x[..., 0] + 1j * x[..., 1], n)[:, :60].astype(np.float32)


UNIT = drawn(9, 4)
UNIT /= np.linalg.norm(UNIT, axis=-1, keepdims=True)
CASES: list[tuple[str, dict[str, Any], dict[str, Any], Callable[..., Any], dict[str, Any]]] = [
    ("prelu", {"x": drawn(5, 3, 8), "weight": drawn(3)}, {"axis": 1}, prelu, {"slope": 2}),
    (
        "gated_delta_rule",
        {
            "q": drawn(9, 4), "k": UNIT, "v": drawn(9, 3),
            "beta": RNG.random(9).astype(np.float32), "g": -RNG.random(9).astype(np.float32),
        },
        {}, delta, {"decay_after": True},
    ),
    ("load_balancing_loss", {"logits": drawn(30, 8)}, {"k": 2}, balance, {"size": 1}),
    ("router_z_loss", {"logits": drawn(30, 8)}, {}, z_loss, {"power": 1}),
    ("logcumsumexp", {"x": drawn(5, 9)}, {}, cumulative, {"shifted": False}),
    ("sampling_softmax", {"x": drawn(5, 9)}, {"top_p": 0.75}, sampled, {"inclusive": True}),
    ("weight_norm", {"x": drawn(5, 9), "g": drawn(5)}, {}, weighed, {"power": 1.0}),
    ("spectral_norm", {"x": drawn(5, 9), "u": drawn(5)}, {}, spectral, {"normalised": False}),
    ("fft", {"x": drawn(3, 60, 2)}, {}, transformed, {"sign": -1}),
    ("rfft", {"x": drawn(3, 60)}, {}, halved, {"first": 30}),
    ("irfft", {"x": drawn(3, 31, 2)}, {"n": 60}, joined, {"n": 61}),
]  # fmt: skip


def excess(op: str, inputs: Any, got: Any, params: Any) -> float:
    """The largest error over its bound."""
    record = registry.get(op)
    outputs = got if isinstance(got, dict) else {record.outputs[0]: got}
    exact = record.evaluate("forward", inputs, params, ("ulp", "float32", 2.0**-10))
    bound = record.bound("forward", inputs, params, FLOAT32)
    return max(
        float(np.max(np.abs(np.asarray(got, float) - exact[name].hi) / (bound[name] + 1e-300)))
        for name, got in outputs.items()
    )


@pytest.mark.parametrize(("op", "inputs", "params", "kernel", "slip"), CASES)
def test_the_usual_code_is_right_and_its_slip_is_not(
    op: str, inputs: Any, params: Any, kernel: Any, slip: Any
) -> None:
    assert excess(op, inputs, kernel(*inputs.values()), params) <= 1
    assert excess(op, inputs, kernel(*inputs.values(), **slip), params) > 2
