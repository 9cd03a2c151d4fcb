"""Mistakes of ports, each written by hand beside the right kernel: the wrong kernel is named, and
the same code without its mistake is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import refkernels

F = np.float32
Kernel = Callable[..., Any]


def normal(*shape: int) -> Any:
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(F)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# --- attention, norms, convolution ----------------------------------------------------------------


def attention(wrong: bool, q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores, scale = q @ k.swapaxes(-1, -2), F(q.shape[-1] ** -0.5)
    scores = (scores + mask) * scale if wrong else scores * scale + mask
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


def causal(wrong: bool, q: Any, k: Any, v: Any) -> Any:
    last = np.arange(len(q[0, 0]))[:, None] + (k.shape[-2] - q.shape[-2] if wrong else 0)
    scores = q @ k.swapaxes(-1, -2) * F(q.shape[-1] ** -0.5)
    p = np.where(last >= np.arange(k.shape[-2]), np.exp(scores), 0)
    return p / p.sum(-1, keepdims=True) @ v


def turned(wrong: bool, x: Any, position: Any) -> Any:
    """Pairs of neighbours, which are written as halves."""
    angle = position[:, None] / 1e4 ** (np.arange(0, x.shape[-1], 2) / x.shape[-1])
    pairs = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    parts = pairs.real, pairs.imag
    return (np.concatenate(parts, -1) if wrong else np.stack(parts, -1).reshape(x.shape)).astype(F)


def rms_norm(wrong: bool, x: Any, weight: Any) -> Any:
    total = np.sum if wrong else np.mean
    return x / np.sqrt(total(x * x, -1, keepdims=True) + F(1e-5)) * weight


def group_norm(wrong: bool, x: Any, weight: Any, bias: Any) -> Any:
    groups = x.shape[1] // 3 if wrong else 3
    rows = x.reshape(len(x), groups, -1)
    mean, var = rows.mean(-1, keepdims=True), rows.var(-1, keepdims=True)
    y = ((rows - mean) / np.sqrt(var + F(1e-5))).reshape(x.shape)
    return y * weight[:, None] + bias[:, None]


def dx_of_layernorm(
    dy: Any, x: Any, weight: Any, mean: bool = True, variance: bool = True, weighted: bool = True
) -> Any:
    d = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((d * d).mean(-1, keepdims=True) + F(1e-5))
    xhat, g = d * r, dy * weight if weighted else dy
    inner = g - g.mean(-1, keepdims=True) if mean else g
    return r * (inner - xhat * (g * xhat).mean(-1, keepdims=True) if variance else inner)


def conv1d(wrong: bool, x: Any, weight: Any) -> Any:
    taps, out = weight.shape[-1], x.shape[-1] - weight.shape[-1] + 1
    x = x[:, ::-1] if wrong else x
    windows = np.stack([x[:, :, t : t + out] for t in range(taps)], -1).astype(float)
    return np.einsum("nctk,ock->not", windows, weight).astype(F)


def padded(mode: str) -> Kernel:
    """A convolution with that padding of np.pad, and with zeros."""

    def kernel(wrong: bool, x: Any, weight: Any) -> Any:
        ends = ((0, 0), (0, 0), (2, 2))
        return conv1d(False, np.pad(x, ends, mode=mode if wrong else "constant"), weight)

    return kernel


# --- functions and losses ---------------------------------------------------------------------


def atan2(wrong: bool, a: Any, b: Any) -> Any:
    return np.arctan2(b, a) if wrong else np.arctan2(a, b)


def gated(gate: Kernel) -> Kernel:
    return lambda wrong, a, b: gate(a) * b if wrong else a * sigmoid(a) * b


def tanh_gelu(a: Any) -> Any:
    return a * F(0.5) * (1 + np.tanh(F(0.7978845608) * (a + F(0.044715) * a * a * a)))


def gelu(wrong: bool, x: Any) -> Any:
    wide = x.astype(float)
    phi = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in wide])
    return (wide * (sigmoid(1.702 * wide) if wrong else phi)).astype(F)


def product(wrong: str, x: Any, weight: Any, bias: Any) -> Any:
    y = (x.astype(float) @ weight.T + bias).astype(F)
    return np.maximum(y, 0) if wrong else y


def matmul(wrong: bool, a: Any, b: Any) -> Any:
    first, second = (b, a) if wrong else (a, b)
    return (first.astype(float) @ second).astype(F)


def layernorm(wrong: bool, x: Any, weight: Any, bias: Any) -> Any:
    d = x - x.mean(-1, keepdims=True)
    y = d / np.sqrt((d * d).mean(-1, keepdims=True) + F(1e-5))
    return y * bias + weight if wrong else y * weight + bias


def spread(root: bool) -> Kernel:
    """The standard deviation or the variance; wrong: the other, or the root mean square."""

    def kernel(wrong: str, x: Any) -> Any:
        centre = 0.0 if wrong == "uncentred" else x.astype(float).mean(-1, keepdims=True)
        var = np.square(x - centre).mean(-1)
        return (np.sqrt(var) if root != (wrong == "root") else var).astype(F)

    return kernel


def binary(wrong: str, x: Any, target: Any, pos_weight: Any) -> Any:
    x = sigmoid(x) if wrong == "probabilities" else x
    slack = np.log1p(np.exp(-np.abs(x)))
    positive = target * (np.maximum(-x, 0) + slack)
    negative = (1 - target) * (np.maximum(x, 0) + slack)
    if wrong == "negatives":
        return positive + pos_weight * negative
    return pos_weight * positive + negative


# --- updates ----------------------------------------------------------------------------------


def sgd(wrong: bool, param: Any, grad: Any, buf: Any) -> dict[str, Any]:
    inside, outside = (F(0.01), F(1)) if wrong else (F(1), F(0.01))
    new = F(0.9) * buf + inside * grad
    return {"param": param - outside * new, "buf": new}


def adam(wrong: str, param: Any, grad: Any, m: Any, v: Any) -> dict[str, Any]:
    m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad * grad
    mhat = m if wrong == "m" else m / (1 - 0.9**3)
    vhat = v if wrong == "v" else v / (1 - 0.999**3)
    step = 1e-3 * mhat / (np.sqrt(vhat) + 1e-8)
    return {"param": (param - step).astype(F), "m": m.astype(F), "v": v.astype(F)}


def lion(wrong: bool, param: Any, grad: Any, m: Any) -> dict[str, Any]:
    (first, other_first), (second, other_second) = (
        (F(beta), F(1 - beta)) for beta in ((0.99, 0.9) if wrong else (0.9, 0.99))
    )
    sign = np.sign(first * m + other_first * grad)
    return {"param": param - F(1e-4) * sign, "m": second * m + other_second * grad}


STATE = {"param": normal(200), "grad": normal(1, 200)[0], "m": normal(3, 1, 200)[0, 0]}
MOMENTS = {**STATE, "m": STATE["m"] * F(0.1), "v": normal(1, 1, 200)[0, 0] ** 2}
ROWS = {"x": normal(16, 32), "weight": normal(32)}
PAIR = {"a": normal(400), "b": normal(2, 400)[1]}
LOGITS = {
    "x": normal(1, 300)[0] * 3,
    "target": (np.arange(300) % 3 == 0).astype(F),
    "pos_weight": np.full(300, 3, F),
}
CHANNELS = {"x": normal(4, 12, 7) * 3 + 2, "weight": normal(12), "bias": normal(1, 12)[0]}
HEADS = {"q": normal(2, 4, 6, 8), "k": normal(2, 4, 9, 8), "v": normal(2, 4, 9, 5)}
MISTAKES: tuple[tuple[str, str, dict[str, Any], dict[str, Any], Kernel, Any], ...] = (
    ("parentheses_moved", "attention", {**HEADS, "mask": normal(2, 4, 6, 9)}, {}, attention, True),
    ("param_differs", "attention", HEADS, {"causal": "top_left"}, causal, True),
    ("output_moved", "rotary", {"x": normal(2, 9, 16), "position": np.arange(9)},
     {"layout": "interleaved"}, turned, True),
    ("input_transformed", "kl_div", {"x": normal(8, 9), "target": np.abs(normal(1, 8, 9)[0])},
     {"reduction": "none"},
     lambda wrong, x, target: target * (np.log(target) - (np.exp(x) if wrong else x)), True),
    ("constant_differs", "rms_norm", ROWS, {},
     lambda wrong, x, weight: x / F(2.5) * weight if wrong else rms_norm(False, x, weight), True),
    ("sum_of_squares", "rms_norm", ROWS, {}, rms_norm, True),
    ("param_differs", "group_norm", CHANNELS, {"num_groups": 3}, group_norm, True),
    ("index_reversed", "conv1d", {"x": normal(2, 3, 40), "weight": normal(4, 3, 3)}, {}, conv1d,
     True),
    *((f"padding_{name}", "conv1d", {"x": normal(2, 3, 12), "weight": normal(4, 3, 5)},
       {"padding": 2}, padded(mode), True)
      for name, mode in (("reflected", "reflect"), ("circular", "wrap"), ("replicated", "edge"))),
    ("arguments_exchanged", "atan2", PAIR, {}, atan2, True),
    ("gelu_gate", "swiglu", PAIR, {}, gated(tanh_gelu), True),
    ("quick_gelu_gate", "swiglu", PAIR, {}, gated(lambda a: a * sigmoid(F(1.702) * a)), True),
    ("relu_gate", "swiglu", PAIR, {}, gated(lambda a: np.maximum(a, 0)), True),
    ("sigmoid_gelu", "gelu", {"x": normal(300)}, {}, gelu, True),
    ("fused_relu", "linear",
     {"x": normal(24, 16), "weight": normal(10, 16), "bias": normal(10)}, {}, product, "relu"),
    ("inputs_exchanged", "matmul", {"a": normal(12, 12), "b": normal(1, 12, 12)[0]}, {}, matmul,
     True),
    ("inputs_exchanged", "layernorm", {**ROWS, "bias": normal(1, 32)[0]}, {}, layernorm, True),
    ("mean_square", "var", {"x": normal(20, 30) + 1}, {}, spread(False), "uncentred"),
    ("mean_square", "std", {"x": normal(20, 30) + 1}, {}, spread(True), "uncentred"),
    ("root_unasked", "var", {"x": normal(20, 30)}, {}, spread(False), "root"),
    ("root_missing", "std", {"x": normal(20, 30)}, {}, spread(True), "root"),
    ("sigmoid_twice", "bce_with_logits", LOGITS, {"reduction": "none"}, binary, "probabilities"),
    ("pos_weight_of_negatives", "bce_with_logits", LOGITS, {"reduction": "none"}, binary,
     "negatives"),
    ("lr_in_momentum", "sgd",
     {"param": STATE["param"], "grad": STATE["grad"], "buf": STATE["m"]}, {"step": 2}, sgd, True),
    ("second_moment_uncorrected", "adam", MOMENTS, {"step": 3}, adam, "v"),
    ("first_moment_uncorrected", "adam", MOMENTS, {"step": 3}, adam, "m"),
    ("betas_exchanged", "lion", STATE, {}, lion, True),
)  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake[1]}-{mistake[0]}")
def test_a_mistake_is_named_and_the_right_kernel_is_not(mistake: Any) -> None:
    cause, op, inputs, params, kernel, wrong = mistake
    answer = refkernels.explain(op, inputs, kernel(wrong, **inputs), params)
    assert answer.cause == cause
    right = refkernels.explain(op, inputs, kernel(type(wrong)(), **inputs), params)
    assert right.cause in (None, "summation_order")
    assert right.verdict in ("exact", "correctly_rounded", "rounding")


@pytest.mark.parametrize(
    ("cause", "options"),
    [
        ("constant_mean", {"mean": False}),
        ("constant_variance", {"variance": False}),
        ("constant_statistics", {"mean": False, "variance": False}),
        ("weight_missing_in_dx", {"weighted": False}),
        (None, {}),
    ],
)
def test_a_term_missing_in_dx_is_named(cause: str | None, options: dict[str, bool]) -> None:
    inputs = {"dy": normal(1, 16, 32)[0], **ROWS}
    got = {"dx": dx_of_layernorm(**inputs, **options)}
    answer = refkernels.explain("layernorm", inputs, got, direction="backward")
    assert answer.cause == cause or (cause is None and answer.cause == "summation_order")


@pytest.mark.parametrize(
    ("factor", "named"), [(2.0, "2"), (1 / np.log(2), "1/ln(2)"), (-1.0, "-1"), (1.2345, None)]
)
def test_a_single_number_has_a_factor_only_if_it_has_a_name(
    factor: float, named: str | None
) -> None:
    x, target = normal(60), normal(1, 60)[0]
    d = np.abs(x - target).astype(float)
    loss = np.where(d <= 1, d * d / 2, d - 0.5).mean()
    answer = refkernels.explain("huber", {"x": x, "target": target}, {"loss": F(loss * factor)})
    assert answer.cause == (named and ("sign_error" if factor < 0 else "scale_factor"))
    if named:
        assert answer.candidates[0].details["factor"] == named


def test_another_definition_goes_before_the_factor_of_a_single_number() -> None:
    x, target = normal(40, 7), np.arange(40) % 7
    y = x - np.log(np.exp(x).sum(-1, keepdims=True))
    total = F(-y[np.arange(40), target].sum())
    answer = refkernels.explain("cross_entropy", {"x": x, "target": target}, {"loss": total})
    assert answer.cause == "sum_instead_of_mean"


def test_an_error_of_a_few_ulp_is_no_factor() -> None:
    x = normal(15, 6)
    got = (x.astype(float).prod(-1) * (1 + 5e-7)).astype(F)
    assert refkernels.explain("prod", {"x": x}, {"y": got}).cause is None


def test_elements_that_are_exact_do_not_hide_the_others() -> None:
    x, target, dloss = normal(3, 259)
    dx = np.where(abs(x - target) < 1, 2 * (x - target), np.sign(x - target)) * dloss
    inputs = {"dloss": dloss, "x": x, "target": target}
    found = refkernels.explain("huber", inputs, {"dx": dx}, {"reduction": "none"}, "backward")
    assert found.cause in ("term_doubled", "factor_missing")  # (x - target)² / 2 without its half
    assert found.confidence == "proven"
