"""The usual faults, which are edits of an op's program: each by its stable name, from NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import refkernels

RNG = np.random.default_rng(37)
F32 = np.float32
X, DY, OTHER = (RNG.standard_normal((48, 24)).astype(F32) for _ in range(3))
W, B = (RNG.uniform(0.5, 1.5, 24).astype(F32) for _ in range(2))
Q, K, V = (RNG.standard_normal((2, 2, 64, 8)).astype(F32) for _ in range(3))
LOW = np.minimum(X, 0)
SCALE = F32(1.0507009873554805)
MASK = RNG.uniform(size=X.shape) < 0.7
Outputs = Mapping[str, Any]


def softmax(s: Any, base: float = np.e) -> Any:
    e = np.power(base, (s - s.max(-1, keepdims=True)).astype(np.float64))
    return e / e.sum(-1, keepdims=True)


def attention(scale: float) -> Outputs:
    return {"o": softmax(scale * (Q @ K.swapaxes(-1, -2))) @ V}


def mean(a: Any) -> Any:
    return a.astype(np.float64).mean(-1, keepdims=True)


def group(ddof: int = 0, outside: bool = False, weight: Any = W) -> Outputs:
    rows = X.reshape(48, 4, 6).astype(np.float64)
    variance = rows.var(-1, keepdims=True, ddof=ddof)
    root = np.sqrt(variance) + 1e-2 if outside else np.sqrt(variance + 1e-2)
    return {"y": ((rows - rows.mean(-1, keepdims=True)) / root).reshape(X.shape) * weight + B}


def rms_gradients(through: bool, weighted: bool) -> Outputs:
    r = 1 / np.sqrt(mean(X**2) + 1e-5)
    g, xhat = DY * (W if weighted else 1.0), X * r
    dx = r * (g - xhat * mean(g * xhat)) if through else r * g
    return {"dx": dx, "dweight": (DY * xhat).sum(0)}


def silu(a: Any) -> Any:
    return a / (1 + np.exp(-a.astype(np.float64)))


NORM = {"x": X, "weight": W}
GROUPED = {**NORM, "bias": B}
ATTENTION = {"q": Q, "k": K, "v": V}
GROUPS = {"num_groups": 4, "eps": 1e-2}
SIGMOID = 1 / (1 + np.exp(-X.astype(np.float64)))
DECAY = {"lr": 0.01, "weight_decay": 0.1}
PLANTED: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any], Callable[[], Outputs]]] = [
    ("constant_statistics", "rms_norm", {"dy": DY, **NORM}, {},
     lambda: rms_gradients(False, True)),
    ("weight_missing_in_dx", "rms_norm", {"dy": DY, **NORM}, {},
     lambda: rms_gradients(True, False)),
    ("unbiased_variance", "group_norm", GROUPED, GROUPS, lambda: group(1)),
    ("eps_outside_sqrt", "group_norm", GROUPED, GROUPS, lambda: group(outside=True)),
    ("weight_plus_one", "group_norm", GROUPED, GROUPS, lambda: group(weight=1 + W)),
    ("scale_missing", "attention", ATTENTION, {}, lambda: attention(1.0)),
    ("scale_squared", "attention", ATTENTION, {}, lambda: attention(1 / 8)),
    ("scale_inverted", "attention", ATTENTION, {}, lambda: attention(8**0.5)),
    ("base_two", "softmax", {"x": X}, {}, lambda: {"y": softmax(X, 2.0)}),
    ("constant_normaliser", "softmax", {"dy": DY, "x": X}, {}, lambda: {"dx": softmax(X) * DY}),
    ("alpha_left_out", "selu", {"x": X}, {},
     lambda: {"y": SCALE * np.where(X > 0, X, np.expm1(LOW))}),
    ("alpha_left_out", "elu", {"x": X}, {"alpha": 0.7},
     lambda: {"y": np.where(X > 0, X, np.expm1(LOW))}),
    ("slope_not_squared", "softsign", {"dy": DY, "x": X}, {},
     lambda: {"dx": DY / (1 + abs(X))}),
    ("sigmoid_of_x", "log_sigmoid", {"dy": DY, "x": X}, {}, lambda: {"dx": DY * SIGMOID}),
    ("gate_swapped", "swiglu", {"a": X, "b": OTHER}, {}, lambda: {"y": silu(OTHER) * X}),
    ("sigmoid_gate", "swiglu", {"a": X, "b": OTHER}, {}, lambda: {"y": SIGMOID * OTHER}),
    ("mask_inverted", "dropout", {"x": X, "mask": MASK}, {"p": 0.3},
     lambda: {"y": np.where(MASK, 0, X / 0.7)}),
    ("decay_ignored", "sgd", {"param": X, "grad": DY}, DECAY, lambda: {"new_param": X - 0.01 * DY}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "op", "inputs", "params", "outputs"),
    PLANTED,
    ids=[f"{op}-{cause}" for cause, op, *_ in PLANTED],
)
def test_a_usual_fault_keeps_its_name(
    cause: str, op: str, inputs: Any, params: Any, outputs: Callable[[], Outputs]
) -> None:
    record = refkernels.registry.get(op)
    direction = "backward" if record.cotangent in inputs else "forward"
    arrays = [np.asarray(array, F32) for array in outputs().values()]
    named = dict(zip(record.names(direction), arrays, strict=False))
    explanation = refkernels.explain(op, inputs, named, params, direction)
    assert explanation.cause == cause
    assert explanation.confidence in ("proven", "matched")
