"""Trainings whose layers hold tensors, or whose functions draw numbers, that no capture shows.

    python quiet_training.py FRAMEWORK

Leaves the folders `weighted` (losses with class weights), `drops_1` and `drops_2` (a dropout that
is not a layer, from two seeds) and `sure` (the same without it); prints {}.
"""

import sys

import numpy as np
from capture import Capture

RNG = np.random.default_rng(8)
X, W = RNG.standard_normal((6, 5)).astype(np.float32), RNG.standard_normal((5, 3))
V = RNG.standard_normal((3, 3)).astype(np.float32)
CLASSES = np.array([0, 2, 1, 1, 0, 2])
BITS = (RNG.random((6, 3)) < 0.4).astype(np.float32)
WEIGHTS = np.array([0.1, 2.0, 0.7], np.float32)
FOLDERS = {"weighted": None, "drops_1": 1, "drops_2": 2, "sure": 0}


def of_modules(base, linear, losses, dropout, tensor):
    """Where layers have a forward; `losses`: cross entropy, NLL and BCE of logits."""

    class Weighted(base):
        def __init__(self):
            super().__init__()
            self.first, self.soft = linear(5, 3), losses[3]
            self.cross, self.nll, self.bce = (loss(tensor(WEIGHTS)) for loss in losses[:3])

        def forward(self, x, classes, bits):
            y = self.first(x)
            return self.cross(y, classes) + self.nll(self.soft(y), classes) + self.bce(y, bits)

    class Drops(base):
        def __init__(self, drops):
            super().__init__()
            self.first, self.last, self.drops = linear(5, 3), linear(3, 3), drops

        def forward(self, x, classes, bits):
            y = self.first(x)
            return (self.last(dropout(y) if self.drops else y) ** 2).mean()

    return Weighted, Drops


def train(name, model, optimizer, step):
    with Capture(name, model, optimizer, steps=[0, 1]) as capture:
        for _ in range(2):
            capture.step(step(), batch=[X, CLASSES, BITS])


def of_torch(torch, F, seed, optimizer):
    """torch and OneFlow."""
    nn, tensor = torch.nn, torch.tensor
    losses = (
        lambda w: nn.CrossEntropyLoss(weight=w), lambda w: nn.NLLLoss(weight=w),
        lambda w: nn.BCEWithLogitsLoss(pos_weight=w), nn.LogSoftmax(dim=-1),
    )  # fmt: skip
    weighted, drops = of_modules(
        nn.Module, nn.Linear, losses, lambda y: F.dropout(y, 0.5, training=True), tensor
    )
    batch = tensor(X), tensor(CLASSES), tensor(BITS)
    for name, kind in FOLDERS.items():
        seed(kind or 0)
        model = weighted() if kind is None else drops(kind)
        with torch.no_grad():
            model.first.weight.copy_(tensor(W.T.astype(np.float32)))
            model.first.bias.copy_(tensor(V[0]))
            if kind is not None:
                model.last.weight.copy_(tensor(V))
                model.last.bias.copy_(tensor(V[1]))
        descent = optimizer(model.parameters())

        def step(model=model, descent=descent):
            descent.zero_grad()
            loss = model(*batch)
            loss.backward()
            descent.step()
            return loss

        train(name, model, descent, step)


def torch_trainings():
    import torch

    torch.set_num_threads(1)
    of_torch(
        torch, torch.nn.functional, torch.manual_seed, lambda p: torch.optim.SGD(list(p), lr=0.1)
    )


def oneflow_trainings():
    import oneflow as flow

    of_torch(flow, flow.nn.functional, flow.manual_seed, lambda p: flow.optim.SGD(list(p), lr=0.1))


def paddle_trainings():
    import paddle

    nn, tensor = paddle.nn, paddle.to_tensor
    losses = (
        lambda w: nn.CrossEntropyLoss(weight=w), lambda w: nn.NLLLoss(weight=w),
        lambda w: nn.BCEWithLogitsLoss(pos_weight=w), nn.LogSoftmax(),
    )  # fmt: skip
    weighted, drops = of_modules(
        nn.Layer, nn.Linear, losses, lambda y: nn.functional.dropout(y, 0.5), tensor
    )
    batch = tensor(X), tensor(CLASSES), tensor(BITS)
    for name, kind in FOLDERS.items():
        paddle.seed(kind or 0)
        model = weighted() if kind is None else drops(kind)
        model.first.weight.set_value(W.astype(np.float32))
        model.first.bias.set_value(V[0])
        if kind is not None:
            model.last.weight.set_value(V.T.copy())
            model.last.bias.set_value(V[1])
        descent = paddle.optimizer.SGD(0.1, parameters=model.parameters())

        def step(model=model, descent=descent):
            loss = model(*batch)
            loss.backward()
            descent.step()
            descent.clear_grad()
            return loss

        train(name, model, descent, step)


def mindspore_trainings():
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_device("CPU")
    ms.set_context(mode=ms.PYNATIVE_MODE)

    class Weighted(nn.Cell):
        def __init__(self):
            super().__init__()
            weights = Tensor(WEIGHTS)
            self.first, self.soft = nn.Dense(5, 3), nn.LogSoftmax()
            self.cross, self.nll = nn.CrossEntropyLoss(weights), nn.NLLLoss(weights)
            self.bce = nn.BCEWithLogitsLoss(pos_weight=weights)

        def construct(self, x, classes, bits):
            y = self.first(x)
            return self.cross(y, classes) + self.nll(self.soft(y), classes) + self.bce(y, bits)

    class Drops(nn.Cell):
        def __init__(self, drops):
            super().__init__()
            self.first, self.last, self.drops = nn.Dense(5, 3), nn.Dense(3, 3), drops

        def construct(self, x, classes, bits):
            y = self.first(x)
            return (self.last(ops.dropout(y, 0.5) if self.drops else y) ** 2).mean()

    batch = Tensor(X), Tensor(CLASSES.astype(np.int32)), Tensor(BITS)
    for name, kind in FOLDERS.items():
        ms.set_seed(kind or 3)
        model = Weighted() if kind is None else Drops(kind)
        model.first.weight.set_data(Tensor(W.T.astype(np.float32)))
        model.first.bias.set_data(Tensor(V[0]))
        if kind is not None:
            model.last.weight.set_data(Tensor(V))
            model.last.bias.set_data(Tensor(V[1]))
        descent = nn.SGD(model.trainable_params(), 0.1)
        gradients = ms.value_and_grad(model, None, descent.parameters)

        def step(descent=descent, gradients=gradients):
            loss, grads = gradients(*batch)
            descent(grads)
            return loss

        train(name, model, descent, step)


if __name__ == "__main__":
    globals()[sys.argv[1] + "_trainings"]()
    print("{}")
