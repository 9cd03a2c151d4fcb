"""Each optimizer of a framework, two captured steps on a layer: words/SGD, ... of FRAMEWORK."""

import json
import sys

import four_frameworks
import numpy as np
from capture import Capture

X = np.random.default_rng(1).standard_normal((4, 5)).astype(np.float32)


def torch_optimizers(o, api):
    return {
        "sgd": lambda p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1),
        "plain": lambda p: o.SGD(p, lr=0.1),
        "adam": lambda p: o.Adam(p, lr=0.1, amsgrad=True),
        "adagrad": lambda p: o.Adagrad(p, lr=0.1, lr_decay=0.5),
        "rmsprop": lambda p: o.RMSprop(p, lr=0.1, alpha=0.8, momentum=0.9, centered=True),
    }


def oneflow_optimizers(o, api):
    return {
        **torch_optimizers(o, api),
        "lamb": lambda p: o.LAMB(p, lr=0.1),
        "rmsprop": lambda p: o.RMSprop(p, lr=0.1, alpha=0.8, centered=True),
    }


def paddle_optimizers(o, api):
    def decayed(p):
        p[1].regularizer = api.regularizer.L2Decay(0.0)
        return o.Adam(0.1, parameters=p, weight_decay=0.25)

    def lamb(p):
        exempt = lambda parameter: parameter.name == p[1].name  # noqa: E731
        return o.Lamb(0.1, parameters=p, exclude_from_weight_decay_fn=exempt)

    def groups(p):
        first = {"params": p[:1], "weight_decay": 0.3}
        return o.AdamW(0.1, parameters=[first, {"params": p[1:], "learning_rate": 0.5}])

    return {
        "decayed": decayed,
        "sgd": lambda p: o.Momentum(0.1, 0.9, parameters=p, weight_decay=0.1),
        "plain": lambda p: o.SGD(0.1, parameters=p),
        "adam": lambda p: o.Adam(0.1, parameters=p, amsgrad=True),
        "lamb": lamb,
        "adagrad": lambda p: o.Adagrad(0.1, parameters=p),
        "rmsprop": lambda p: o.RMSProp(0.1, rho=0.8, momentum=0.9, centered=True, parameters=p),
        "groups": groups,
    }


def mindspore_optimizers(nn, api):
    from mindspore.experimental import optim

    return {
        "sgd": lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.5, weight_decay=0.1),
        "momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
        "closed": lambda p: nn.Momentum(p, 0.1, 0.9),  # over its input, which is no argument
        "adam": lambda p: nn.Adam(p, 0.1, use_amsgrad=True),
        "adagrad": lambda p: nn.Adagrad(p, learning_rate=0.1),
        "rmsprop": lambda p: nn.RMSProp(p, 0.1, decay=0.8, momentum=0.9, centered=True),
        "experimental": lambda p: optim.AdamW(p, lr=0.1),
        "scheduled": lambda p: nn.SGD(p, nn.PolynomialDecayLR(0.1, 0.0, 10, 1.0)),
    }


def train(api, name, make):
    model = api.linear(5, 3)
    optimizer = make(api.free(model))
    x = api.tensor(X)
    batch = [] if name == "closed" else [x]
    step = api.step(model, optimizer, lambda *given: (model(*(given or [x])) ** 2).mean())
    with Capture(f"words/{name}", model, optimizer, steps=[0, 1]) as capture:
        for _ in range(2):
            capture.step(step(*batch))


if __name__ == "__main__":
    api = four_frameworks.of(sys.argv[1])
    makers = globals()[sys.argv[1] + "_optimizers"](api.optim, api.api)
    for name, make in makers.items():
        train(api, name, make)
    print(json.dumps(list(makers)))
