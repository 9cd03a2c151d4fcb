"""Each optimizer of a framework, two captured steps on a layer: words/SGD, ... of FRAMEWORK."""

import json
import sys

import numpy as np
from capture import Capture

X = np.random.default_rng(1).standard_normal((4, 5)).astype(np.float32)


def torch_optimizers():
    import torch

    o = torch.optim
    makers = {
        "sgd": lambda p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1),
        "plain": lambda p: o.SGD(p, lr=0.1),
        "adam": lambda p: o.Adam(p, lr=0.1, amsgrad=True),
        "adagrad": lambda p: o.Adagrad(p, lr=0.1, lr_decay=0.5),
        "rmsprop": lambda p: o.RMSprop(p, lr=0.1, alpha=0.8, momentum=0.9, centered=True),
    }
    for name, make in makers.items():
        model = torch.nn.Linear(5, 3)

        def step(optimizer, model=model):
            optimizer.zero_grad()
            loss = (model(torch.from_numpy(X)) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        yield name, model, make(model.parameters()), step


def oneflow_optimizers():
    import oneflow as flow

    o = flow.optim
    makers = {
        "sgd": lambda p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1),
        "plain": lambda p: o.SGD(p, lr=0.1),
        "adam": lambda p: o.Adam(p, lr=0.1, amsgrad=True),
        "lamb": lambda p: o.LAMB(p, lr=0.1),
        "adagrad": lambda p: o.Adagrad(p, lr=0.1, lr_decay=0.5),
        "rmsprop": lambda p: o.RMSprop(p, lr=0.1, alpha=0.8, centered=True),
    }
    for name, make in makers.items():
        model = flow.nn.Linear(5, 3)

        def step(optimizer, model=model):
            optimizer.zero_grad()
            loss = (model(flow.tensor(X)) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        yield name, model, make(model.parameters()), step


def paddle_optimizers():
    import paddle

    o = paddle.optimizer

    def decayed(p):
        p[1].regularizer = paddle.regularizer.L2Decay(0.0)
        return o.Adam(0.1, parameters=p, weight_decay=0.25)

    makers = {
        "decayed": decayed,
        "sgd": lambda p: o.Momentum(0.1, 0.9, parameters=p, weight_decay=0.1),
        "plain": lambda p: o.SGD(0.1, parameters=p),
        "adam": lambda p: o.Adam(0.1, parameters=p, amsgrad=True),
        "lamb": lambda p: o.Lamb(
            0.1,
            parameters=p,
            exclude_from_weight_decay_fn=lambda parameter: parameter.name == p[1].name,
        ),
        "adagrad": lambda p: o.Adagrad(0.1, parameters=p),
        "rmsprop": lambda p: o.RMSProp(0.1, rho=0.8, momentum=0.9, centered=True, parameters=p),
        "groups": lambda p: o.AdamW(
            0.1,
            parameters=[
                {"params": p[:1], "weight_decay": 0.3},
                {"params": p[1:], "learning_rate": 0.5},
            ],
        ),
    }
    for name, make in makers.items():
        model = paddle.nn.Linear(5, 3)

        def step(optimizer, model=model):
            loss = (model(paddle.to_tensor(X)) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        yield name, model, make(model.parameters()), step


def mindspore_optimizers():
    import mindspore as ms
    from mindspore import nn
    from mindspore.experimental import optim

    ms.set_device("CPU")
    ms.set_context(mode=ms.PYNATIVE_MODE)
    makers = {
        "sgd": lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.5, weight_decay=0.1),
        "momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
        "adam": lambda p: nn.Adam(p, 0.1, use_amsgrad=True),
        "adagrad": lambda p: nn.Adagrad(p, learning_rate=0.1),
        "rmsprop": lambda p: nn.RMSProp(p, 0.1, decay=0.8, momentum=0.9, centered=True),
        "experimental": lambda p: optim.AdamW(p, lr=0.1),
        "scheduled": lambda p: nn.SGD(p, nn.PolynomialDecayLR(0.1, 0.0, 10, 1.0)),
    }
    for name, make in makers.items():
        model = nn.Dense(5, 3)
        optimizer = make(model.trainable_params())
        gradients = ms.value_and_grad(
            lambda x, model=model: (model(x) ** 2).mean(), None, optimizer.parameters
        )

        def step(optimizer, gradients=gradients):
            loss, grads = gradients(ms.Tensor(X))
            optimizer(grads)
            return loss

        yield name, model, optimizer, step


if __name__ == "__main__":
    names = []
    for name, model, optimizer, step in globals()[sys.argv[1] + "_optimizers"]():
        with Capture(f"words/{name}", model, optimizer, steps=[0, 1]) as capture:
            for _ in range(2):
                capture.step(step(optimizer))
        names.append(name)
    print(json.dumps(names))
