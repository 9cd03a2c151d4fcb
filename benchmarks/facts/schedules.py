"""Section 5: the rates that each framework's schedules use, by step."""

from __future__ import annotations

from facts.asked import Fact, printed

STEPS = (0, 1, 2, 10, 98, 99, 100)
TORCH = """
import json, warnings, torch
from torch.optim import lr_scheduler as s
warnings.simplefilter("ignore")
o = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
made = {}
o.step(); rates = []
for _ in range(101):
    rates.append(o.param_groups[0]["lr"]); made.step()
print(json.dumps([rates[k] for k in (0, 1, 2, 10, 98, 99, 100)]))
"""
PADDLE = """
import json, paddle
from paddle.optimizer import lr as s
made = {}
rates = []
for _ in range(101):
    rates.append(made()); made.step()
print(json.dumps([rates[k] for k in (0, 1, 2, 10, 98, 99, 100)]))
"""
ONEFLOW = """
import json, oneflow as flow
from oneflow.optim import lr_scheduler as s
o = flow.optim.SGD([flow.nn.Parameter(flow.zeros(1))], lr=1e-3)
made = {}
rates = []
for _ in range(101):
    rates.append(o.param_groups[0]["lr"]); made.step()
print(json.dumps([rates[k] for k in (0, 1, 2, 10, 98, 99, 100)]))
"""
MINDSPORE = """
import json, numpy as np, mindspore as ms
from mindspore import nn
made = {}
rates = [float(made(ms.Tensor(k, ms.int32)).asnumpy()) for k in (0, 1, 2, 10, 98, 99, 100)]
print(json.dumps(rates))
"""
SCRIPTS = {"torch": TORCH, "paddle": PADDLE, "oneflow": ONEFLOW, "mindspore": MINDSPORE}
LINEAR = (0, 1e-4, 2e-4, 1e-3, 2.222e-5, 1.111e-5, 0)
FROM_START = (1e-3, 9.9e-4, 9.8e-4, 9e-4, 2e-5, 1e-5, 0)
COSINE = (1e-3, 9.99753e-4, 9.99013e-4, 9.75528e-4, 9.866e-7, 2.467e-7, 0)
ROWS: list[tuple[str, str, str, tuple[float, ...]]] = [
    ("torch", "SequentialLR(LinearLR, PolynomialLR(90))",
     "s.SequentialLR(o, [s.LinearLR(o, 0.1, 1, 10), s.PolynomialLR(o, 90)], [10])",
     (1e-4, 1.9e-4, 2.8e-4, 1e-3, 2.222e-5, 1.111e-5, 0)),
    ("torch", "LambdaLR, t / 10, then (100 - t) / 90",
     "s.LambdaLR(o, lambda t: t / 10 if t < 10 else (100 - t) / 90)", LINEAR),
    ("torch", "ChainedScheduler(LinearLR, PolynomialLR(100))",
     "s.ChainedScheduler([s.LinearLR(o, 0.1, 1, 10), s.PolynomialLR(o, 100)])",
     (1e-4, 1.881e-4, 2.744e-4, 9e-4, 2e-5, 1e-5, 0)),
    ("torch", "PolynomialLR(100)", "s.PolynomialLR(o, 100)", FROM_START),
    ("torch", "CosineAnnealingLR(100)", "s.CosineAnnealingLR(o, 100)", COSINE),
    ("paddle", "LinearWarmup(PolynomialDecay of 90)",
     "s.LinearWarmup(s.PolynomialDecay(1e-3, 90, 0, 1), 10, 0, 1e-3)", LINEAR),
    ("paddle", "LinearWarmup(PolynomialDecay of 100)",
     "s.LinearWarmup(s.PolynomialDecay(1e-3, 100, 0, 1), 10, 0, 1e-3)",
     (0, 1e-4, 2e-4, 1e-3, 1.2e-4, 1.1e-4, 1e-4)),
    ("paddle", "PolynomialDecay(100)", "s.PolynomialDecay(1e-3, 100, 0, 1)", FROM_START),
    ("paddle", "CosineAnnealingDecay(100)", "s.CosineAnnealingDecay(1e-3, 100)", COSINE),
    ("oneflow", "WarmUpLR(PolynomialLR(100))",
     "s.WarmUpLR(s.PolynomialLR(o, 100, 0), 0, 10, 'linear')",
     (0, 9e-5, 1.8e-4, 9e-4, 2e-5, 1e-5, 0)),
    ("oneflow", "WarmUpLR(PolynomialLR(90), warmup_prefix)",
     "s.WarmUpLR(s.PolynomialLR(o, 90, 0), 0, 10, 'linear', warmup_prefix=True)", LINEAR),
    ("oneflow", "PolynomialLR(100)", "s.PolynomialLR(o, 100, 0)", FROM_START),
    ("oneflow", "CosineAnnealingLR(100)", "s.CosineAnnealingLR(o, 100)", COSINE),
    ("mindspore", "WarmUpLR(10)", "nn.WarmUpLR(1e-3, 10)",
     (0, 1e-4, 2e-4, 1e-3, 1e-3, 1e-3, 1e-3)),
    ("mindspore", "PolynomialDecayLR(100)", "nn.PolynomialDecayLR(1e-3, 0.0, 100, 1.0)",
     FROM_START),
    ("mindspore", "CosineDecayLR(100)", "nn.CosineDecayLR(0.0, 1e-3, 100)", COSINE),
]  # fmt: skip
COSINES = {
    "torch": "s.CosineAnnealingLR(o, 100)",
    "paddle": "s.CosineAnnealingDecay(1e-3, 100)",
    "oneflow": "s.CosineAnnealingLR(o, 100)",
}
AFTER = [
    Fact(
        "5",
        framework,
        f"{call.split('(')[0].removeprefix('s.')} rises again after its end: step 101",
        "2.467e-07",
        printed(
            SCRIPTS[framework]
            .replace("made = {}", f"made = {call}")
            .replace("range(101)", "range(102)")
            .replace("(0, 1, 2, 10, 98, 99, 100)", "(101,)"),
            [2.467e-7],
            4,
        ),
    )
    for framework, call in COSINES.items()
]
AFTER += [
    Fact("5", framework, "CosineDecayLR stays at its end: steps 100, 101", "0, 0",
         printed(SCRIPTS[framework].replace("made = {}", f"made = {call}")
                 .replace("range(101)", "range(102)")
                 .replace("(0, 1, 2, 10, 98, 99, 100)", "(100, 101)"), [0.0, 0.0], 4))
    for framework, call in (("oneflow", "s.CosineDecayLR(o, 100)"),
                            ("mindspore", "nn.CosineDecayLR(0.0, 1e-3, 100)"))
]  # fmt: skip
FACTS = [
    Fact("5", framework, f"{claim}: steps 0, 1, 2, 10, 98, 99, 100",
         ", ".join(f"{rate:g}" for rate in rates),
         printed(SCRIPTS[framework].replace("made = {}", f"made = {call}"), rates, 4))
    for framework, claim, call, rates in ROWS
] + AFTER  # fmt: skip
