"""A tiny training in each framework, run by its own interpreter beside a copy of capture.py.

    python tiny_training.py FRAMEWORK STEPS OPTIMIZER[:FOLDER[:JSON]] ...

Trains once for each OPTIMIZER; without FOLDER the probe is off.  Prints one JSON line, a list: for
each training the losses' hex and a hash of the weights after each step.  The model has an
embedding, a layer that is called twice, LayerNorm, GELU, a residual addition and a frozen weight;
its weights come from NumPy, so that all frameworks start alike.  "rank" in JSON is that of one of
two processes, as the environment tells it, and "trains" another number of steps.
"""

import contextlib
import hashlib
import json
import os
import sys

import numpy as np

IDS = np.random.default_rng(5).integers(0, 7, (6, 4, 5))
TARGETS = np.random.default_rng(6).standard_normal((6, 4, 5, 3)).astype(np.float32)
SHAPES = {  # in the layout (inputs, outputs)
    "embed": (7, 6), "mix.weight": (6, 6), "mix.bias": (6,), "norm.weight": (6,), "norm.bias": (6,),
    "head.weight": (6, 3), "head.bias": (3,),
}  # fmt: skip


def weights():
    rng = np.random.default_rng(4)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def of_module(nn, base, linear, api, grad=None):
    """A model for frameworks whose layers have a forward (torch, oneflow, paddle)."""

    class Tiny(base):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 6)
            self.mix = linear(6, 6)
            self.norm = nn.LayerNorm(6)
            self.act = nn.GELU()
            self.head = linear(6, 3)

        def forward(self, ids):
            hidden = self.embed(ids)
            hidden = self.mix(self.act(self.mix(hidden))) + hidden
            return self.head(self.norm(hidden))

    return Tiny()


def torch_training(kind):
    import torch

    torch.set_num_threads(1)
    model = of_module(torch.nn, torch.nn.Module, torch.nn.Linear, torch)
    start = weights()
    with torch.no_grad():
        model.embed.weight.copy_(torch.from_numpy(start["embed"]))
        for name in ("mix", "head"):
            getattr(model, name).weight.copy_(torch.from_numpy(start[name + ".weight"].T.copy()))
            getattr(model, name).bias.copy_(torch.from_numpy(start[name + ".bias"]))
        model.norm.weight.copy_(torch.from_numpy(start["norm.weight"]))
        model.norm.bias.copy_(torch.from_numpy(start["norm.bias"]))
    model.head.bias.requires_grad_(False)
    free = [p for p in model.parameters() if p.requires_grad]
    optimizer = {
        "sgd": lambda: torch.optim.SGD(free, lr=0.01, momentum=0.9),
        "adamw": lambda: torch.optim.AdamW(
            [{"params": free[:2], "weight_decay": 0.1}, {"params": free[2:], "lr": 2e-3}], lr=1e-3
        ),
    }[kind]()

    def step(ids, targets):
        optimizer.zero_grad()
        loss = ((model(ids) - targets) ** 2).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(free, 0.5)
        optimizer.step()
        return loss

    return model, optimizer, step, torch.from_numpy, lambda p: p.detach().numpy()


def oneflow_training(kind):
    import oneflow as flow

    model = of_module(flow.nn, flow.nn.Module, flow.nn.Linear, flow)
    start = weights()
    with flow.no_grad():
        model.embed.weight.copy_(flow.tensor(start["embed"]))
        for name in ("mix", "head"):
            getattr(model, name).weight.copy_(flow.tensor(start[name + ".weight"].T.copy()))
            getattr(model, name).bias.copy_(flow.tensor(start[name + ".bias"]))
        model.norm.weight.copy_(flow.tensor(start["norm.weight"]))
        model.norm.bias.copy_(flow.tensor(start["norm.bias"]))
    model.head.bias.requires_grad = False
    free = [p for p in model.parameters() if p.requires_grad]
    optimizer = {
        "sgd": lambda: flow.optim.SGD(free, lr=0.01, momentum=0.9),
        "adamw": lambda: flow.optim.AdamW(
            [
                {"params": free[:2], "lr": 1e-3, "weight_decay": 0.1},
                {"params": free[2:], "lr": 2e-3, "weight_decay": 0.01},
            ]
        ),
    }[kind]()

    def step(ids, targets):
        optimizer.zero_grad()
        loss = ((model(ids) - targets) ** 2).mean()
        loss.backward()
        flow.nn.utils.clip_grad_norm_(free, 0.5)
        optimizer.step()
        return loss

    return model, optimizer, step, flow.tensor, lambda p: p.detach().numpy()


def paddle_training(kind):
    import paddle

    model = of_module(paddle.nn, paddle.nn.Layer, paddle.nn.Linear, paddle)
    start = weights()
    model.embed.weight.set_value(start["embed"])
    for name in ("mix", "head", "norm"):
        getattr(model, name).weight.set_value(start[name + ".weight"])
        getattr(model, name).bias.set_value(start[name + ".bias"])
    model.head.bias.stop_gradient = True
    free = [p for p in model.parameters() if not p.stop_gradient]
    clip = paddle.nn.ClipGradByGlobalNorm(0.5)
    exempt = {model.norm.weight.name, model.norm.bias.name}
    optimizer = {
        "sgd": lambda: paddle.optimizer.Momentum(0.01, 0.9, parameters=free, grad_clip=clip),
        "adamw": lambda: paddle.optimizer.AdamW(
            1e-3, parameters=free, weight_decay=0.1, grad_clip=clip,
            apply_decay_param_fun=lambda name: name not in exempt,
        ),
    }[kind]()  # fmt: skip

    def step(ids, targets):
        loss = ((model(ids) - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return model, optimizer, step, paddle.to_tensor, lambda p: p.numpy()


def mindspore_training(kind):
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_device("CPU")
    ms.set_context(mode=ms.PYNATIVE_MODE)

    class Tiny(nn.Cell):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 6)
            self.mix = nn.Dense(6, 6)
            self.norm = nn.LayerNorm((6,), epsilon=1e-5)
            self.act = nn.GELU(approximate=False)
            self.head = nn.Dense(6, 3)

        def construct(self, ids):
            hidden = self.embed(ids)
            hidden = self.mix(self.act(self.mix(hidden))) + hidden
            return self.head(self.norm(hidden))

    model, start = Tiny(), weights()
    model.embed.embedding_table.set_data(Tensor(start["embed"]))
    for name in ("mix", "head"):
        getattr(model, name).weight.set_data(Tensor(start[name + ".weight"].T.copy()))
        getattr(model, name).bias.set_data(Tensor(start[name + ".bias"]))
    model.norm.gamma.set_data(Tensor(start["norm.weight"]))
    model.norm.beta.set_data(Tensor(start["norm.bias"]))
    model.head.bias.requires_grad = False
    free = model.trainable_params()
    optimizer = {
        "sgd": lambda: nn.Momentum(free, 0.01, 0.9, weight_decay=0.1),
        "adamw": lambda: nn.AdamWeightDecay(
            [{"params": free[:2], "weight_decay": 0.1}, {"params": free[2:], "lr": 2e-3}], 1e-3
        ),
    }[kind]()
    gradients = ms.value_and_grad(
        lambda ids, targets: ((model(ids) - targets) ** 2).mean(), None, optimizer.parameters
    )

    def step(ids, targets):
        loss, grads = gradients(ids, targets)
        optimizer(ops.clip_by_global_norm(grads, 0.5))
        return loss

    return model, optimizer, step, Tensor, lambda p: p.asnumpy()


TRAININGS = {
    "torch": torch_training,
    "paddle": paddle_training,
    "oneflow": oneflow_training,
    "mindspore": mindspore_training,
}


def train(framework, steps, kind, folder="", options="{}"):
    model, optimizer, step, tensor, array = TRAININGS[framework](kind)
    parameters = model.parameters_and_names() if framework == "mindspore" else (
        model.named_parameters()
    )  # fmt: skip
    parameters = [parameter for _, parameter in parameters]
    capture = None
    if folder:
        from capture import Capture

        given = json.loads(options)
        steps = given.pop("trains", steps)
        ranked = {"RANK": str(given.pop("rank")), "WORLD_SIZE": "2"} if "rank" in given else {}
        os.environ.update(ranked)
        capture = Capture(folder, model, optimizer, **given)
        for name in ranked:
            del os.environ[name]
    losses, hashes = [], []
    with capture or contextlib.nullcontext():
        for index in range(steps):
            batch = {"ids": tensor(IDS[index % 6]), "targets": tensor(TARGETS[index % 6])}
            loss = step(batch["ids"], batch["targets"])
            if capture is not None:
                capture.step(loss=loss, batch=batch, scale=1.0)
            losses.append(float(array(loss)).hex())
            digest = hashlib.sha256()
            for parameter in parameters:
                digest.update(array(parameter).tobytes())
            hashes.append(digest.hexdigest())
    return {"losses": losses, "hashes": hashes, "modules": sorted(sys.modules)}


if __name__ == "__main__":
    framework, steps, *trainings = sys.argv[1:]
    outcomes = [train(framework, int(steps), *training.split(":", 2)) for training in trainings]
    print(json.dumps(outcomes))
