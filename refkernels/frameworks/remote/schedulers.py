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


def optimizer_of(framework, rate):
    """An optimizer of one number, whose learning rate a scheduler sets; and that rate."""
    optimizer = framework.optim.SGD([framework.nn.Parameter(framework.zeros(1))], lr=rate)
    return optimizer, lambda: optimizer.param_groups[0]["lr"]


def formula(p, cos, low, high, last):
    """The cosine schedule in a framework's ops, of float32 steps."""
    return low + 0.5 * (high - low) * (1.0 + cos(math.pi * (p / last)))


def torch_cosine(low, high, last):
    import torch

    optimizer, rate = optimizer_of(torch, high)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, last, eta_min=low)
    optimizer.step()  # a scheduler warns unless its optimizer has made a step first
    p = torch.arange(last + 1).to(torch.float32)
    return {
        "CosineAnnealingLR": stepped(scheduler, rate, last),
        "formula": formula(p, torch.cos, low, high, last).numpy(),
    }


def paddle_cosine(low, high, last):
    import paddle

    scheduler = paddle.optimizer.lr.CosineAnnealingDecay(high, T_max=last, eta_min=low)
    p = paddle.arange(last + 1).astype("float32")
    return {
        "CosineAnnealingDecay": stepped(scheduler, scheduler, last),
        "formula": formula(p, paddle.cos, low, high, last).numpy(),
    }


def oneflow_cosine(low, high, last):
    import oneflow as flow

    rates = {}
    for name, settings in (
        ("CosineDecayLR", {"decay_steps": last, "alpha": low / high}),
        ("CosineAnnealingLR", {"T_max": last, "eta_min": low}),
    ):
        optimizer, rate = optimizer_of(flow, high)
        scheduler = getattr(flow.optim.lr_scheduler, name)(optimizer, **settings)
        rates[name] = stepped(scheduler, rate, last)
    p = flow.arange(last + 1).to(flow.float32)
    return {**rates, "formula": formula(p, flow.cos, low, high, last).numpy()}


def mindspore_cosine(low, high, last):
    import mindspore
    from mindspore import Tensor, ops

    steps = Tensor(np.arange(last + 1), mindspore.int32)
    schedule = mindspore.nn.CosineDecayLR(low, high, last)
    p = ops.cast(steps, mindspore.float32)
    own = formula(p, ops.cos, low, high, last).asnumpy()
    return {"CosineDecayLR": schedule(steps).asnumpy(), "formula": own}


def torch_warmed(low, high, last, warm):
    import torch

    schedulers, (optimizer, rate) = torch.optim.lr_scheduler, optimizer_of(torch, high)
    rise = schedulers.LinearLR(optimizer, 0.125, 1.0, warm)
    fall = schedulers.LinearLR(optimizer, 1.0, low / high, last - warm)
    scheduler = schedulers.SequentialLR(optimizer, [rise, fall], [warm])
    optimizer.step()
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
        optimizer, rate = optimizer_of(flow, high)
        fall = schedulers.PolynomialLR(optimizer, steps, low, 1.0)
        scheduler = schedulers.WarmUpLR(fall, 0.0, warm, "linear", prefix)
        rates[name] = stepped(scheduler, rate, last)
    return rates


def mindspore_warmed(low, high, last, warm):
    import mindspore
    from mindspore import Tensor

    steps = Tensor(np.arange(last + 1), mindspore.int32)
    schedule = mindspore.nn.WarmUpLR(high, warm)
    rates = [schedule(step).asnumpy() for step in steps]
    return {"WarmUpLR": np.array(rates)}


def decays(framework, high, last, size, gamma, *polynomial):
    settings = {"StepLR": (size, gamma), "ExponentialLR": (gamma,), "PolynomialLR": polynomial}
    rates = {}
    for name, numbers in settings.items():
        optimizer, rate = optimizer_of(framework, high)
        scheduler = getattr(framework.optim.lr_scheduler, name)(optimizer, *numbers)
        optimizer.step()
        rates[name] = stepped(scheduler, rate, last)
    return rates


def torch_decays(high, last, size, gamma, power):
    import torch

    return decays(torch, high, last, size, gamma, last, power)


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

    return decays(flow, high, last, size, gamma, last, 0.0, power)


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


def main(framework, path, kind, *numbers):
    question = [float(n) if "." in n or "e" in n else int(n) for n in numbers]
    np.savez(path, **globals()["%s_%s" % (framework, kind)](*question))


if __name__ == "__main__":
    main(*sys.argv[1:])
