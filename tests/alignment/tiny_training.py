"""A tiny training in each framework, run by its own interpreter beside a copy of capture.py.

    python tiny_training.py FRAMEWORK STEPS OPTIMIZER[:FOLDER[:JSON]] ...

Trains once for each OPTIMIZER; without FOLDER the probe is off.  Prints one JSON line, a list: for
each training the losses' hex and a hash of the weights after each step.  The model has an
embedding, a layer that is called twice, LayerNorm, GELU, a residual addition and a frozen weight;
its weights come from NumPy, so that all frameworks start alike.  In JSON, "trains" is STEPS, and
"bare" a model without the residual addition.
"""

import contextlib
import hashlib
import json
import sys

import four_frameworks
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


def forward(self, ids):
    hidden = self.embed(ids)
    made = self.mix(self.act(self.mix(hidden)))
    return self.head(self.norm(made if self.bare else made + hidden))


def torch_optimizer(optim, kind, free, model):
    if kind == "sgd":
        return optim.SGD(free, lr=0.01, momentum=0.9)
    groups = [{"params": free[:2], "lr": 1e-3, "weight_decay": 0.1},
              {"params": free[2:], "lr": 2e-3, "weight_decay": 0.01}]  # fmt: skip
    return optim.AdamW(groups, lr=1e-3)


def paddle_optimizer(optim, kind, free, model):
    from paddle.nn import ClipGradByGlobalNorm

    options = {"parameters": free, "grad_clip": ClipGradByGlobalNorm(0.5)}
    if kind == "sgd":
        return optim.Momentum(0.01, 0.9, **options)
    exempt = {model.norm.weight.name, model.norm.bias.name}
    decayed = lambda name: name not in exempt  # noqa: E731
    return optim.AdamW(1e-3, weight_decay=0.1, apply_decay_param_fun=decayed, **options)


def mindspore_optimizer(optim, kind, free, model):
    if kind == "sgd":
        return optim.Momentum(free, 0.01, 0.9, weight_decay=0.1)
    groups = [{"params": free[:2], "weight_decay": 0.1}, {"params": free[2:], "lr": 2e-3}]
    return optim.AdamWeightDecay(groups, 1e-3)


OPTIMIZERS = {"paddle": paddle_optimizer, "mindspore": mindspore_optimizer}


def training(framework, kind):
    api, start = four_frameworks.of(framework), weights()
    model = four_frameworks.model(
        api, forward, embed=api.nn.Embedding(7, 6), mix=api.linear(6, 6), norm=api.norm(6),
        act=api.gelu(), head=api.linear(6, 3),
    )  # fmt: skip
    api.set(model.embed, start["embed"])
    for name in ("mix", "norm", "head"):
        api.set(getattr(model, name), start[name + ".weight"], start[name + ".bias"])
    api.freeze(model.head.bias)
    make = OPTIMIZERS.get(framework, torch_optimizer)
    optimizer = make(api.optim, kind, api.free(model), model)
    loss_of = lambda ids, targets: ((model(ids) - targets) ** 2).mean()  # noqa: E731
    return api, model, optimizer, api.step(model, optimizer, loss_of, 0.5)


def train(framework, steps, kind, folder="", options="{}"):
    api, model, optimizer, step = training(framework, kind)
    given = json.loads(options)
    model.bare, steps = given.pop("bare", False), given.pop("trains", steps)
    parameters = model.get_parameters() if framework == "mindspore" else model.parameters()
    parameters = list(parameters)
    capture = None
    if folder:
        from capture import Capture

        capture = Capture(folder, model, optimizer, **given)
    losses, hashes = [], []
    with capture or contextlib.nullcontext():
        for index in range(steps):
            batch = {"ids": api.tensor(IDS[index % 6]), "targets": api.tensor(TARGETS[index % 6])}
            loss = step(batch["ids"], batch["targets"])
            if capture is not None:  # a mask of truth values or of whole numbers
                mask = (IDS[index % 6] > 2).astype(bool if framework == "torch" else int)
                capture.step(loss=loss, batch={**batch, "mask": api.tensor(mask)}, scale=1.0)
            losses.append(float(api.array(loss)).hex())
            digest = hashlib.sha256()
            for parameter in parameters:
                digest.update(api.array(parameter).tobytes())
            hashes.append(digest.hexdigest())
    return {"losses": losses, "hashes": hashes, "modules": sorted(sys.modules)}


if __name__ == "__main__":
    framework, steps, *trainings = sys.argv[1:]
    outcomes = [train(framework, int(steps), *training.split(":", 2)) for training in trainings]
    print(json.dumps(outcomes))
