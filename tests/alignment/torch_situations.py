"""Trainings in torch that a probe must cope with; each is run by name and leaves a folder.

    python torch_situations.py NAME...

Prints one JSON object: what each situation returned.  `both` runs a training with and without the
probe and returns whether the bits agree.
"""

import contextlib
import functools
import hashlib
import json
import os
import shutil
import sys

import torch
import torch.utils.checkpoint
from capture import Capture

torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self, middle=None, size=6):
        super().__init__()
        self.first = torch.nn.Linear(5, size)
        self.middle = torch.nn.Tanh() if middle is None else middle
        self.last = torch.nn.Linear(size, 2)

    def forward(self, x):
        return self.last(self.middle(self.first(x)))


def batches(count, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    for _ in range(count):
        yield torch.randn(4, 5, generator=generator).to(dtype)


def hash_of(model):
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def train(model, folder=None, count=3, update=None, options=None, optimizer=None):
    """Train; update(loss, optimizer, step, model) does the backward pass and the step."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses, dtype = [], next(model.parameters()).dtype
    probe = Capture(folder, model, optimizer, **(options or {})) if folder else None
    with probe or contextlib.nullcontext():
        for step, x in enumerate(batches(count, dtype)):
            optimizer.zero_grad()
            loss = (model(x).float() ** 2).mean()
            (update or then(stepped))(loss, optimizer, step, model)
            if probe:
                probe.step(loss=loss, batch=[x])
            losses.append(loss.item().hex())
    return {"losses": losses, "hash": hash_of(model)}


def both(folder, make, **settings):
    runs = []
    for place in (None, folder):
        torch.manual_seed(0)
        runs.append(train(make(), place, **settings))
    return {"same": runs[0] == runs[1], "distinct": len(set(runs[0]["losses"]))}


class RootMeanSquare(torch.nn.Module):
    """Uses its input twice, and the residual does a third time: autograd adds three gradients."""

    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(6, 6)

    def forward(self, x):
        return x + self.up(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Functional(Net):
    def forward(self, x):
        return self.last(torch.nn.functional.gelu(self.first(x).view(4, 6), approximate="tanh"))


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(5, 5), torch.nn.Linear(5, 5)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(self.first(x))


class Attending(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = torch.nn.MultiheadAttention(6, 2, batch_first=True)
        self.first, self.unused = torch.nn.Linear(5, 6), torch.nn.Linear(2, 2)

    def forward(self, x):
        x = self.first(x)[None]
        return self.attend(x, x, value=x, need_weights=False)[0]


class Inner(torch.nn.Module):
    def forward(self, pair, scale=1.0, *, more):
        return {"a": pair[0] * scale, "b": (pair[1]["x"] + more, None)}


class Outer(Net):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        y = self.first(x)
        outputs = self.inner((y, {"x": y}), 2.0, more=y)
        return self.last(outputs["a"] + outputs["b"][0])


class Checkpointed(Net):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(super().forward, x, use_reentrant=False)


class Autocast(Net):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x)


MODELS = {
    "plain": Net,
    "in_place": lambda: Net(torch.nn.ReLU(inplace=True)),
    "bfloat16": lambda: Net().to(torch.bfloat16),
    "double": lambda: Net().double(),
    "batch_norm": lambda: Net(torch.nn.BatchNorm1d(6)),
    "dropout": lambda: Net(torch.nn.Dropout(0.5)),
    "used_again": lambda: Net(RootMeanSquare()),
    "functional": Functional,
    "tied": Tied,
    "attention": Attending,
    "nested": Outer,
    "checkpointed": Checkpointed,
    "scripted": lambda: Net(torch.jit.script(torch.nn.Tanh())),
    "compiled": lambda: torch.compile(Net(), backend="eager"),
    "whole_model_is_a_layer": lambda: torch.nn.Linear(5, 2),
}


def then(*acts):
    """An update: a backward pass, and what follows."""

    def update(loss, optimizer, step, model):
        loss.backward()
        for act in acts:
            act(optimizer, step)

    return update


def stepped(optimizer, step):
    optimizer.step()


def shrunk(optimizer, step):
    optimizer.param_groups[0]["params"][0].data.mul_(0.99)


def without_momentum(optimizer, step):
    optimizer.param_groups[0]["momentum"] = 0.9 if step == 0 else 0.5


def accumulated_update(loss, optimizer, step, model):
    loss.backward()
    (model(torch.ones(2, 5)) ** 2).mean().backward()
    optimizer.step()


SCALERS = {}


def scaled_update(loss, optimizer, step, model):
    """Loss scaling, unscaling, clipping by the norm."""
    scaler = SCALERS.setdefault(id(optimizer), torch.amp.GradScaler("cpu"))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    scaler.step(optimizer)
    scaler.update()


TRAINED = {
    "only": {"options": {"only": "fir*"}},
    "every": {"count": 7, "options": {"steps": [], "every": 3}},
    "skipped": {"update": then(lambda optimizer, step: step == 1 or optimizer.step())},
    "averaged": {"update": then(stepped, shrunk)},
    "twice": {"update": then(stepped, stepped)},
    "changed": {"update": then(without_momentum, stepped)},
    "accumulated": {"update": accumulated_update},
    "scheduled": {
        "update": then(stepped, lambda o, step: o.param_groups[0].update(lr=0.05 / 2**step))
    },
    "mixed_precision": {"make": Autocast, "update": scaled_update},
}


def without_optimizer(folder):
    model = Net()
    with Capture(folder, model, steps=[0]) as capture:
        loss = model(torch.ones(4, 5)).sum()
        loss.backward()
        capture.step(loss)
    return {}


def watched(folder):
    def losses(place):
        torch.manual_seed(0)
        model, values = Net(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        probe = Capture(place, model, optimizer, steps=[1]) if place else contextlib.nullcontext()
        with probe as capture:
            watch = capture.watch if place else lambda name, function: function
            loss_of = watch("loss", torch.nn.functional.cross_entropy)
            norm = watch("norm", torch.nn.LayerNorm(2, eps=1e-3))
            for x in batches(3):
                optimizer.zero_grad()
                y = torch.tensor([0, 1, -100, 1])
                loss = loss_of(norm(model(x)), y, label_smoothing=0.1)
                loss.backward()
                optimizer.step()
                values.append(loss.item().hex())
                if place:
                    capture.step(loss)
        assert norm(torch.ones(1, 2)).shape == (1, 2)
        return values

    return {"same": losses(None) == losses(folder)}


def raised(folder):
    def fail(optimizer, step):
        if step == 2:
            raise KeyError("planned")

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with contextlib.suppress(KeyError):
        train(model, folder, 4, then(fail, stepped), {"steps": range(9)}, optimizer)
    hooks = [p._post_accumulate_grad_hooks or () for p in model.parameters()]
    hooks += [optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks]
    forwards = sum("forward" in vars(layer) for layer in model.modules())
    return {"forwards": forwards, "hooks": sum(map(len, hooks))}


def killed(folder):
    pid = os.fork()
    if pid == 0:
        dies = then(lambda optimizer, step: os._exit(9) if step == 2 else optimizer.step())
        train(Net(), folder, 4, dies, {"steps": range(9)})
    return {"status": os.waitpid(pid, 0)[1]}


def full_disk(folder):
    """No room at entry; no room in the middle; a write that fails."""
    usage, answers, room = shutil.disk_usage, {}, [10]
    shutil.disk_usage = lambda path: type(usage("/"))(10**9, 0, room[0])
    try:
        Capture(folder, Net(), steps=[0]).__enter__()
    except OSError as error:
        answers["entry"] = str(error)
    room[0] = 10**9

    def update(loss, optimizer, step, model):
        loss.backward()
        optimizer.step()
        room[0] = 20 if step == 1 else 10**9
        if step == 2:
            os.mkdir(os.path.join(folder, "rank_0", "step_000002.safetensors"))

    try:
        answers.update(both(folder, Net, count=4, update=None))
        shutil.rmtree(folder)
        train(Net(), folder, 4, update, {"steps": range(4)})
    finally:
        shutil.disk_usage = usage
    return answers


def message(call, *given, **named):
    """The message of what is raised."""
    try:
        call(*given, **named)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        return str(error)


def refused(folder):
    """The messages that refuse bad arguments."""
    net = Net()

    def enter(*given, **named):
        Capture(*given, **named).__enter__()

    answers = {
        "model": message(enter, folder, object()),
        "steps": message(enter, folder, net, steps=[-1]),
        "only": message(enter, folder, net, only="nothing"),
        "rank": message(enter, folder, net, rank=3),
        "perturb": message(enter, folder, torch.nn.ReLU(), perturb=1),
    }
    with Capture(folder, net, steps=[]) as capture:
        answers["taken"] = message(capture.watch, "first", abs)
        answers["uncallable"] = message(capture.watch, "x", 3)
        answers["loss"] = message(capture.step, torch.ones(2))
        answers["loss_word"] = message(capture.step, "x")
    answers["exists"] = message(enter, folder, net)
    answers["outside"] = message(capture.step, 1.0)
    return answers


if __name__ == "__main__":
    settings = {name: {"make": make} for name, make in MODELS.items()}
    settings |= {name: {"make": Net, **how} for name, how in TRAINED.items()}
    situations = globals() | {n: functools.partial(both, **how) for n, how in settings.items()}
    print(json.dumps({name: situations[name](os.path.abspath(name)) for name in sys.argv[1:]}))
