"""The frameworks' own cosine schedules, and the formula built from their ops, at every step.

    python schedulers.py FRAMEWORK MIN_LR MAX_LR DECAY_STEPS FILE.npz

Runs in the framework's interpreter; writes one array of decay_steps + 1 rates by scheduler name.
"""

import math
import sys

import numpy as np


def stepped(scheduler, rate, last):
    """What a scheduler that is stepped says from step 0 to the last."""
    rates = [rate()]
    for _ in range(last):
        scheduler.step()
        rates.append(rate())
    return np.array(rates, np.float64)


def torch_rates(low, high, last):
    import torch

    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=high)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, last, eta_min=low)
    optimizer.step()  # a scheduler warns where its optimizer has not moved first
    p = torch.arange(last + 1).to(torch.float32)
    formula = low + 0.5 * (high - low) * (1.0 + torch.cos(math.pi * (p / last)))
    return {
        "CosineAnnealingLR": stepped(scheduler, lambda: optimizer.param_groups[0]["lr"], last),
        "formula": formula.numpy(),
    }


def paddle_rates(low, high, last):
    import paddle

    scheduler = paddle.optimizer.lr.CosineAnnealingDecay(high, T_max=last, eta_min=low)
    p = paddle.arange(last + 1).astype("float32")
    formula = low + 0.5 * (high - low) * (1.0 + paddle.cos(math.pi * (p / last)))
    return {
        "CosineAnnealingDecay": stepped(scheduler, scheduler, last),
        "formula": formula.numpy(),
    }


def oneflow_rates(low, high, last):
    import oneflow as flow

    schedulers = flow.optim.lr_scheduler
    found = {}
    for name, settings in (
        ("CosineDecayLR", {"decay_steps": last, "alpha": low / high}),
        ("CosineAnnealingLR", {"T_max": last, "eta_min": low}),
    ):
        optimizer = flow.optim.SGD([flow.nn.Parameter(flow.zeros(1))], lr=high)
        scheduler = getattr(schedulers, name)(optimizer, **settings)
        found[name] = stepped(scheduler, lambda o=optimizer: o.param_groups[0]["lr"], last)
    p = flow.arange(last + 1).to(flow.float32)
    formula = low + 0.5 * (high - low) * (1.0 + flow.cos(math.pi * (p / last)))
    return {**found, "formula": formula.numpy()}


def mindspore_rates(low, high, last):
    import mindspore
    from mindspore import Tensor, ops

    steps = Tensor(np.arange(last + 1), mindspore.int32)
    schedule = mindspore.nn.CosineDecayLR(low, high, last)
    p = ops.cast(steps, mindspore.float32)
    formula = low + 0.5 * (high - low) * (1.0 + ops.cos(math.pi * (p / last)))
    return {"CosineDecayLR": schedule(steps).asnumpy(), "formula": formula.asnumpy()}


RATES = {
    "torch": torch_rates,
    "paddle": paddle_rates,
    "oneflow": oneflow_rates,
    "mindspore": mindspore_rates,
}


def main(framework, low, high, last, path):
    np.savez(path, **RATES[framework](float(low), float(high), int(last)))


if __name__ == "__main__":
    main(*sys.argv[1:])
