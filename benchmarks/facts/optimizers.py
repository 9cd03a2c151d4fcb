"""Sections 0 and 1: optimizers. One step of each framework's own, explained or printed."""

from __future__ import annotations

from typing import Any

import numpy as np

from facts.asked import Array, Fact, explained, gives, printed

N = 203  # no multiple of 8: there is a tail


def state(dtype: str, *names: str, scale: float = 1.0) -> dict[str, Array]:
    """param, grad and the named state; a quarter of the parameters is 0."""
    rng = np.random.default_rng(20)
    param, grad, *drawn = rng.standard_normal((2 + len(names), N))
    arrays = {"param": param * (np.arange(N) % 4 > 0), "grad": scale * grad}
    squares = ("v", "vmax", "accum")
    for name, array in zip(names, drawn, strict=True):
        arrays[name] = np.square(scale * array) if name in squares else scale * array
    if "mean" in arrays:
        arrays["mean"] = 0.9 * np.sqrt(arrays["accum"])
    return {name: array.astype(dtype) for name, array in arrays.items()}


def step(
    section: str, framework: str, claim: str, figure: str, op: str, dtype: str, states: str,
    params: dict[str, Any], *causes: str, scale: float = 1.0, because: str = "",
) -> Fact:  # fmt: skip
    inputs = state(dtype, *states.split(), scale=scale)
    claim = f"{claim} ({dtype})"
    return Fact(section, framework, claim, figure, explained(op, inputs, params, *causes), because)


STORED = ("float32_hyperparameters", "params_rounded")
SGD = {"lr": 0.1, "momentum": 0.9, "step": 3, "weight_decay": 0.01}
MOMENTUM = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}
ADAM = {"lr": 0.01, "step": 3}
DECAYED = {**ADAM, "weight_decay": 0.05}
RMSPROP = {"lr": 0.01, "rho": 0.95, "eps": 1e-6}
SMALL = 2.0**-24  # gradients so small that eps is seen
ZERO = np.zeros(5)
LAMB = {"param": np.full(5, 2.0), "grad": ZERO, "m": ZERO, "v": ZERO}
LAMB_STEP = {"lr": 0.1, "weight_decay": 0.01}
ONE = {"param": np.zeros(3), "grad": np.ones(3), "m": np.zeros(3), "v": np.zeros(3)}

TORCH = [
    step("1", "torch", "SGD with momentum is exact", "exact", "sgd", "float64", "buf", SGD),
    step("1", "torch", "SGD's buffer starts as the gradient, dampening or not", "exact",
         "sgd", "float64", "buf", {**SGD, "step": 1, "dampening": 0.1}),
    step("1", "torch", "SGD with Nesterov is exact", "exact",
         "sgd", "float64", "buf", {**SGD, "nesterov": True}),
    step("1", "torch", "Adam is exact", "exact", "adam", "float64", "m v", ADAM),
    step("1", "torch", "amsgrad is exact", "exact", "adam", "float64", "m v vmax", ADAM),
    step("1", "torch", "Adam's weight_decay is L2", "L2", "adam", "float64", "m v", DECAYED),
    step("1", "torch", "AdamW is exact", "exact", "adamw", "float64", "m v", DECAYED),
    step("1", "torch", "Adagrad is exact, with lr_decay", "exact",
         "adagrad", "float64", "accum", {"lr": 0.1, "lr_decay": 0.1, "step": 3}),
    step("1", "torch", "RMSprop is exact, eps outside the root", "exact",
         "rmsprop", "float64", "accum buf", {**RMSPROP, "momentum": 0.9}, scale=1e-3),
]  # fmt: skip
PADDLE = [
    step("1", "paddle", "SGD is exact", "exact", "sgd", "float64", "", {"lr": 0.1}),
    step("0.1", "paddle", "Momentum holds mu in float32", "f(mu)",
         "momentum", "float64", "buf", {**MOMENTUM, "weight_decay": 0.0}, *STORED),
    step("1", "paddle", "Adam is exact", "exact", "adam", "float64", "m v", ADAM),
    step("1", "paddle", "float64 amsgrad is exact", "exact", "adam", "float64", "m v vmax", ADAM),
    step("1", "paddle", "AdamW holds the decay in float32", "f(wd)",
         "adamw", "float64", "m v", DECAYED, *STORED),
    step("1", "paddle", "Lamb holds betas, eps and decay in float32", "f(b1), f(b2), f(eps), f(wd)",
         "lamb", "float64", "m v", DECAYED, *STORED),
    step("0.11", "paddle", "Lamb without decay has no trust ratio", "plain Adam steps",
         "lamb", "float32", "m v", {**ADAM, "weight_decay": 0.0}, "trust_ratio_needs_decay"),
    step("1", "paddle", "Adagrad holds eps in float32", "f(eps)", "adagrad", "float64", "accum",
         {"lr": 0.1, "eps": 1e-6, "step": 3}, "eps_rounded", *STORED, scale=1e-5),
    step("1", "paddle", "RMSProp has eps inside the root", "sqrt(a + eps)",
         "rmsprop", "float32", "accum", RMSPROP, "eps_inside_sqrt", scale=1e-3),
    step("1", "paddle", "RMSProp holds rho and eps in float32", "f(rho), f(eps)",
         "rmsprop", "float64", "accum", RMSPROP, *STORED),
    Fact("1", "paddle", "Lamb, zero gradient: moves by lr w", "1.8",
         gives("lamb", LAMB, LAMB_STEP, [1.8] * 5)),
    Fact("1", "paddle", "AdamW's default weight_decay", "0.01", printed(
        "import inspect, paddle\n"
        "p = inspect.signature(paddle.optimizer.AdamW.__init__).parameters\n"
        "print([p['weight_decay'].default])", [0.01], 7)),
]  # fmt: skip
ONEFLOW = [
    step("0.1", "oneflow", "SGD holds lr, momentum and decay in float32", "all f()",
         "sgd", "float64", "buf", SGD, *STORED),
    step("1", "oneflow", "the buffer starts from 0: dampening acts in step 1", "from 0",
         "sgd", "float32", "buf", {**SGD, "step": 1, "dampening": 0.1, "weight_decay": 0.0},
         "dampened_first_step"),
    step("0.1", "oneflow", "Adam holds its hyper-parameters in float32", "all f()",
         "adam", "float64", "m v", ADAM, *STORED),
    step("1", "oneflow", "AdamW's step is decayed with the old parameter", "rounding",
         "adamw", "float32", "m v", DECAYED,
         because="oneflow's beta2 in float32 is seen in float32 too: v is 1.29e-5 too small"),
    step("0.1", "oneflow", "AdamW holds its hyper-parameters in float32", "all f()",
         "adamw", "float64", "m v", DECAYED, *STORED),
    step("1", "oneflow", "LAMB's norm is that of the update without decay", "norm(r)",
         "lamb", "float32", "m v", DECAYED, "norm_without_decay"),
    step("1", "oneflow", "Adagrad is exact without lr_decay", "exact",
         "adagrad", "float32", "accum", {"lr": 0.125, "eps": 2.0**-30, "step": 3}),
    step("1", "oneflow", "RMSprop has eps inside the root", "sqrt(a + eps)",
         "rmsprop", "float32", "accum", RMSPROP, "eps_inside_sqrt", scale=1e-3),
    Fact("1", "oneflow", "LAMB, zero gradient: moves by lr wd w", "1.998",
         gives("lamb", LAMB, LAMB_STEP, [1.998] * 5)),
    Fact("1", "oneflow", "v after a gradient of 1 is 1.29e-5 too small", "1 - f(b2)",
         gives("adam", ONE, {}, [1 - float(np.float32(0.999))] * 3, output="v", digits=12)),
    Fact("1", "oneflow", "AdamW's default weight_decay", "0", printed(
        "import inspect, oneflow\n"
        "p = inspect.signature(oneflow.optim.AdamW.__init__).parameters\n"
        "print([p['weight_decay'].default])", [0.0], 7)),
]  # fmt: skip
NAMED = """
import json, sys
import numpy as np, mindspore as ms
from mindspore import nn
moved = []
for name in ("weight", "beta", "norm.gamma"):
    for optimizer in ("SGD", "Momentum", "Adam", "AdamWeightDecay"):
        own = ms.Parameter(ms.Tensor(np.ones(3, np.float32)), name=name)
        options = {"momentum": 0.9} if optimizer == "Momentum" else {}
        made = getattr(nn, optimizer)([own], learning_rate=0.5, weight_decay=0.25, **options)
        made((ms.Tensor(np.zeros(3, np.float32)),))
        moved.append(float(abs(own.asnumpy() - 1).max() > 0))
print(json.dumps(moved))
"""
MINDSPORE = [
    step("1", "mindspore", "SGD is right in float32", "float32 only",
         "sgd", "float32", "buf", {**SGD, "weight_decay": 0.0}),
    step("0.2", "mindspore", "Momentum ignores Nesterov", "bits of plain momentum",
         "momentum", "float32", "buf", {"lr": 0.1, "nesterov": True}, "nesterov_ignored"),
    step("0.2", "mindspore", "SGD has Nesterov", "works",
         "sgd", "float32", "buf", {**SGD, "nesterov": True, "weight_decay": 0.0}),
    step("0.3", "mindspore", "RMSProp: eps inside the root in the tail only", "n mod 8",
         "rmsprop", "float32", "accum", RMSPROP, "eps_inside_in_tail", scale=1e-3),
    step("0.3", "mindspore", "centred RMSProp: eps inside the root", "sqrt(ms - mg² + eps)",
         "rmsprop", "float32", "accum mean", RMSPROP, "eps_inside_sqrt", scale=1e-3),
    Fact("0.3", "mindspore", "RMSProp's mean square starts at 1", "1", printed(
        "import numpy as np, mindspore as ms\n"
        "own = ms.Parameter(ms.Tensor(np.ones(3, np.float32)), name='w')\n"
        "print(ms.nn.RMSProp([own]).ms[0].asnumpy().tolist())", [1.0] * 3, 7)),
    Fact("0.4", "mindspore", "parameters called beta or gamma are not decayed "
         "(moved or not: weight, beta, gamma; SGD, Momentum, Adam, AdamWeightDecay)",
         "weight only", printed(NAMED, [1.0] * 4 + [0.0] * 8, 2)),
    *(
        step("0.4", "mindspore", f"{op}: a parameter called norm.beta is not decayed",
             "not decayed", op, "float32", states, {**params, "name": "norm.beta"},
             "decay_ignored")
        for op, states, params in (
            ("sgd", "buf", SGD), ("momentum", "buf", {"lr": 0.1, "weight_decay": 0.1}),
            ("adam", "m v", DECAYED), ("adamw", "m v", DECAYED),
        )
    ),
    step("1", "mindspore", "Adam's eps is not rescaled", "sqrt(v) + eps",
         "adam", "float32", "m v", ADAM, "eps_hat", scale=SMALL),
    step("1", "mindspore", "AdamWeightDecay does not correct the bias", "no bias correction",
         "adamw", "float32", "m v", DECAYED, "no_bias_correction"),
    step("0.1", "mindspore", "AdamWeightDecay casts float64 to float32", "bits of the float32 run",
         "adamw", "float64", "m v", DECAYED, "float32_cast", "no_bias_correction"),
    step("1", "mindspore", "Adagrad has no eps", "no eps at all",
         "adagrad", "float32", "accum", {"lr": 0.1, "eps": 1e-8}, "no_eps", scale=1e-5,
         because="withdrawn: its kernel divides by sqrt(accum + 1e-8)"),
]  # fmt: skip
FIRST_RATE_LOST = """
import json, warnings, torch
warnings.simplefilter("ignore")
w = torch.nn.Parameter(torch.zeros(1))
o = torch.optim.SGD([w], lr=1.0)
s = torch.optim.lr_scheduler.LambdaLR(o, lambda t: 1 / (t + 1))
rates = []
for _ in range(3):
    w.grad = torch.ones(1)
    s.step()
    rates.append(o.param_groups[0]["lr"])
    o.step()
print(json.dumps(rates))
"""
ORDER = Fact("1", "torch", "scheduler.step() before optimizer.step() drops the first rate",
             "1/2, 1/3, 1/4", printed(FIRST_RATE_LOST, [1 / 2, 1 / 3, 1 / 4], 7))  # fmt: skip
FACTS = [*TORCH, ORDER, *PADDLE, *ONEFLOW, *MINDSPORE]
