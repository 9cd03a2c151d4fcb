"""The rates of the frameworks' schedules at every step.

    python schedulers.py FRAMEWORK FILE.npz cosine MIN_LR MAX_LR DECAY_STEPS
    python schedulers.py FRAMEWORK FILE.npz warmed MIN_LR MAX_LR DECAY_STEPS WARMUP_STEPS
    python schedulers.py FRAMEWORK FILE.npz decays MAX_LR DECAY_STEPS STEP_SIZE GAMMA POWER

Runs in the framework's interpreter; writes one array of decay_steps + 1 rates by scheduler name:
of its cosine schedules, and of the formula in its ops; of its linear warm-ups, each followed, if it
can be, by a linear decay to the last step; of its step, exponential and polynomial decays.
"""

import math
import sys

import numpy as np


def stepped(scheduler, rate, last):
    """The rates of a scheduler, stepped from step 0 to the last."""
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
    optimizer.step()  # a scheduler warns unless its optimizer has made a step first
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
    rates = {}
    for name, settings in (
        ("CosineDecayLR", {"decay_steps": last, "alpha": low / high}),
        ("CosineAnnealingLR", {"T_max": last, "eta_min": low}),
    ):
        optimizer = flow.optim.SGD([flow.nn.Parameter(flow.zeros(1))], lr=high)
        scheduler = getattr(schedulers, name)(optimizer, **settings)
        rates[name] = stepped(scheduler, lambda o=optimizer: o.param_groups[0]["lr"], last)
    p = flow.arange(last + 1).to(flow.float32)
    formula = low + 0.5 * (high - low) * (1.0 + flow.cos(math.pi * (p / last)))
    return {**rates, "formula": formula.numpy()}


def mindspore_rates(low, high, last):
    import mindspore
    from mindspore import Tensor, ops

    steps = Tensor(np.arange(last + 1), mindspore.int32)
    schedule = mindspore.nn.CosineDecayLR(low, high, last)
    p = ops.cast(steps, mindspore.float32)
    formula = low + 0.5 * (high - low) * (1.0 + ops.cos(math.pi * (p / last)))
    return {"CosineDecayLR": schedule(steps).asnumpy(), "formula": formula.asnumpy()}


def torch_warmed(low, high, last, warm):
    import torch

    schedulers = torch.optim.lr_scheduler
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=high)
    rise = schedulers.LinearLR(optimizer, 0.125, 1.0, warm)
    fall = schedulers.LinearLR(optimizer, 1.0, low / high, last - warm)
    scheduler = schedulers.SequentialLR(optimizer, [rise, fall], [warm])
    optimizer.step()
    rate = lambda: optimizer.param_groups[0]["lr"]  # noqa: E731
    return {"SequentialLR": stepped(scheduler, rate, last)}


def paddle_warmed(low, high, last, warm):
    from paddle.optimizer import lr

    scheduler = lr.LinearWarmup(lr.PolynomialDecay(high, last - warm, low, 1.0), warm, 0.0, high)
    return {"LinearWarmup": stepped(scheduler, scheduler, last)}


def oneflow_warmed(low, high, last, warm):
    import oneflow as flow

    schedulers = flow.optim.lr_scheduler
    rates = {}
    for name, prefix, steps in (("WarmUpLR", False, last), ("WarmUpLR, prefix", True, last - warm)):
        optimizer = flow.optim.SGD([flow.nn.Parameter(flow.zeros(1))], lr=high)
        fall = schedulers.PolynomialLR(optimizer, steps, low, 1.0)
        scheduler = schedulers.WarmUpLR(fall, 0.0, warm, "linear", prefix)
        rates[name] = stepped(scheduler, lambda o=optimizer: o.param_groups[0]["lr"], last)
    return rates


def mindspore_warmed(low, high, last, warm):
    import mindspore
    from mindspore import Tensor

    steps = Tensor(np.arange(last + 1), mindspore.int32)
    schedule = mindspore.nn.WarmUpLR(high, warm)
    rates = [schedule(step).asnumpy() for step in steps]
    return {"WarmUpLR": np.array(rates)}


def torch_decays(high, last, size, gamma, power):
    import torch

    schedulers = torch.optim.lr_scheduler
    settings = {"StepLR": (size, gamma), "ExponentialLR": (gamma,), "PolynomialLR": (last, power)}
    rates = {}
    for name, numbers in settings.items():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=high)
        scheduler = getattr(schedulers, name)(optimizer, *numbers)
        optimizer.step()
        rates[name] = stepped(scheduler, lambda o=optimizer: o.param_groups[0]["lr"], last)
    return rates


def paddle_decays(high, last, size, gamma, power):
    from paddle.optimizer import lr

    made = {
        "StepDecay": lr.StepDecay(high, size, gamma),
        "ExponentialDecay": lr.ExponentialDecay(high, gamma),
        "PolynomialDecay": lr.PolynomialDecay(high, last, 0.0, power),
    }
    return {name: stepped(scheduler, scheduler, last) for name, scheduler in made.items()}


def oneflow_decays(high, last, size, gamma, power):
    import oneflow as flow

    schedulers = flow.optim.lr_scheduler
    settings = {
        "StepLR": (size, gamma),
        "ExponentialLR": (gamma,),
        "PolynomialLR": (last, 0.0, power),
    }
    rates = {}
    for name, numbers in settings.items():
        optimizer = flow.optim.SGD([flow.nn.Parameter(flow.zeros(1))], lr=high)
        scheduler = getattr(schedulers, name)(optimizer, *numbers)
        rates[name] = stepped(scheduler, lambda o=optimizer: o.param_groups[0]["lr"], last)
    return rates


def mindspore_decays(high, last, size, gamma, power):
    import mindspore
    from mindspore import Tensor, nn

    made = {
        "ExponentialDecayLR, is_stair": nn.ExponentialDecayLR(high, gamma, size, is_stair=True),
        "ExponentialDecayLR": nn.ExponentialDecayLR(high, gamma, 1),
        "PolynomialDecayLR": nn.PolynomialDecayLR(high, 0.0, last, power),
    }
    steps = [Tensor(step, mindspore.int32) for step in range(last + 1)]
    return {
        name: np.array([schedule(step).asnumpy() for step in steps])
        for name, schedule in made.items()
    }


RATES = {
    "cosine": {
        "torch": torch_rates,
        "paddle": paddle_rates,
        "oneflow": oneflow_rates,
        "mindspore": mindspore_rates,
    },
    "warmed": {
        "torch": torch_warmed,
        "paddle": paddle_warmed,
        "oneflow": oneflow_warmed,
        "mindspore": mindspore_warmed,
    },
    "decays": {
        "torch": torch_decays,
        "paddle": paddle_decays,
        "oneflow": oneflow_decays,
        "mindspore": mindspore_decays,
    },
}


def main(framework, path, kind, *numbers):
    question = [float(n) if "." in n or "e" in n else int(n) for n in numbers]
    np.savez(path, **RATES[kind][framework](*question))


if __name__ == "__main__":
    main(*sys.argv[1:])
