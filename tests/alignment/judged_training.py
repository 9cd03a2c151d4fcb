"""Small trainings in torch that are right in unusual ways, or wrong by one thing.

    python judged_training.py NAME ...

Each NAME is a folder to capture to, and the name of a training; "NAME+" is the same one with one
weight moved by an ulp.
"""

import sys
from functools import partial, reduce

import torch
from capture import Capture
from torch.nn.functional import normalize

torch.set_num_threads(1)
nn = torch.nn


class Model(nn.Module):
    def __init__(self, *layers, loss=None):
        super().__init__()
        self.body, self.loss = nn.Sequential(*layers), loss or nn.CrossEntropyLoss()

    def forward(self, x, y):
        return self.loss(self.body(x), y)


def mlp(*middle, loss=None):
    return Model(nn.Linear(5, 8), *(middle or (nn.GELU(),)), nn.Linear(8, 3), loss=loss)


class ByTokens(Model):
    """Classes on the second of three axes, labels that are ignored."""

    def forward(self, x, y):
        logits = self.body(x)[:, :, None].expand(-1, -1, 2)
        return self.loss(logits, torch.stack((y, torch.full_like(y, -100)), 1))


class Around(nn.Module):
    """What a function makes of a layer and its input."""

    def __init__(self, function, layer=None):
        super().__init__()
        self.function, self.layer = function, layer

    def forward(self, x):
        return self.function(self.layer, x)


def around(function, layer=lambda: None):
    return {"model": lambda: mlp(Around(function, layer()))}


def mixed(z, y, velocity=False):
    a, b = z.sin(), z.cos()
    return nn.functional.mse_loss(0.6 * a + 0.8 * b, 0.6 * b - 0.8 * a if velocity else b)


def pictured(change):
    def model():
        filters = Around(change), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten()
        return Model(nn.Linear(5, 48), nn.Unflatten(1, (3, 4, 4)), *filters, nn.Linear(16, 3))

    return {"model": model}


class Own(torch.optim.SGD):
    """A user's class, whose step is made of its base's, and keeps some digits of its sums."""

    def step(self):
        super().step()
        for state in self.state.values():
            state["momentum_buffer"].round_(decimals=self.digits)


def trained(between=lambda model, step: True, zero=True):
    """Steps of a training. `between` may change the gradients: False where no update follows."""

    def train(model, optimizer, x, y, step):
        if zero:
            optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        if between(model, step) is not False:
            optimizer.step()
        return loss

    return train


plain = trained()


def evaluated(model, optimizer, x, y, step):
    loss = plain(model, optimizer, x, y, step)
    with torch.no_grad():
        model(x, y)
    return loss


def accumulated(model, optimizer, x, y, step, over=2):
    optimizer.zero_grad()
    losses = [model(x[at : at + 3], y[at : at + 3]) / over for at in (0, 3)]
    for loss in losses:
        loss.backward()
    optimizer.step()
    return sum(losses) * over / 2


def changed(change, model, optimizer, x, y, step):
    """A step of a training that changes the optimizer's states before its second update."""
    for state in optimizer.state.values() if step == 1 else ():
        change(state)
    return plain(model, optimizer, x, y, step)


def following(share, model, *given):
    """Draws a frozen layer to another behind the update."""
    loss = plain(model, *given)
    model.body[1].weight.lerp_(model.body[0].weight.detach()[:, :1], share)
    return loss


def magnified(factor, model, *given):
    weights = [p.detach() for p in model.parameters()]
    torch._foreach_mul_(weights, factor)
    return trained(lambda *_: torch._foreach_div_(weights, factor))(model, *given)


def scaled(model, optimizer, x, y, step):
    optimizer.zero_grad()
    scaler, loss = torch.amp.GradScaler("cpu", init_scale=3.0), model(x, y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    return loss


def overflow(model, step):
    """As a loss scaler does: no update where gradients are not finite."""
    for p in model.parameters() if step == 1 else ():
        p.grad.mul_(float("inf"))
    return step != 1


def clamped(limit):
    return trained(lambda model, step: nn.utils.clip_grad_value_(model.parameters(), limit))


def dropping(p, seed):
    model = mlp(nn.Dropout(p))
    torch.manual_seed(seed)
    return model


WEIGHTS = torch.tensor([0.1, 2.0, 0.7])
WRAPPED = nn.utils.parametrizations.weight_norm
FROZEN = {"model": lambda: mlp(nn.Linear(8, 8).requires_grad_(False))}
LATE = {"train": trained(lambda model, step: step or model.body[0].zero_grad())}  # a layer
TRAININGS = {
    "plain": {},
    "class_weights": {"model": lambda: mlp(loss=nn.CrossEntropyLoss(weight=WEIGHTS))},
    "class_axis": {"model": lambda: ByTokens(nn.Linear(5, 3))},
    "rms_norm": {"model": lambda: mlp(nn.RMSNorm(8))},
    "implied_axis": {"model": lambda: mlp(nn.Unflatten(0, (1, 6)), nn.Softmax(), nn.Flatten(0, 1))},
    "weight_norm": {"model": lambda: mlp(WRAPPED(nn.Linear(8, 8)))},
    "late": LATE,
    "late_sgd": {**LATE, "optimizer": lambda p: torch.optim.SGD(p, 0.1, 0.9, dampening=0.3)},
    "decoupled": {
        "optimizer": lambda p: torch.optim.Adam(p, weight_decay=0.1, decoupled_weight_decay=True)
    },
    "bfloat16": {"model": lambda: mlp().bfloat16(), "dtype": torch.bfloat16, "steps": [1]},
    "evaluated": {"train": evaluated},
    "accumulated": {"train": accumulated},
    "nan": {"train": lambda model, *rest: plain(lambda x, y: model(x, y) * float("nan"), *rest)},
    "middle": {"steps": [2]},
    "dropout": {"model": lambda: dropping(0.1, 1)},
    "dropout_other_seed": {"model": lambda: dropping(0.1, 2)},
    "dropout_more": {"model": lambda: dropping(0.2, 1)},
    "not_zeroed": {"train": trained(zero=False)},
    "unscaled": {"train": lambda *given: accumulated(*given, over=1)},
    "lost": {"train": trained(lambda model, step: setattr(model.body[0].weight, "grad", None))},
    "skipping": {"train": trained(lambda model, step: step != 1)},
    "overflowing": {"train": trained(overflow)},
    "clamped": {"train": clamped(0.01)},
    "clamped_less": {"train": clamped(0.02)},
    "averaged": {"model": lambda: mlp(nn.BatchNorm1d(8))},
    "average_kept": {"model": lambda: mlp(nn.BatchNorm1d(8).eval())},
    "frozen": FROZEN,
    "spaced": {"steps": [0, 2]},
    "counted": {"train": partial(changed, lambda one: one["step"].add_(1)), "steps": [0, 2]},
    "renewed": {"train": partial(changed, dict.clear)},
    "lstm": around(lambda lstm, x: lstm(x)[0], lambda: nn.LSTM(8, 8)),
    "lstm_kept": around(lambda lstm, x: lstm(x, [torch.ones(1, 8)] * 2)[0], lambda: nn.LSTM(8, 8)),
    "pictures": pictured(lambda _, x: x),
    "flipped": pictured(lambda _, x: x.flip(1)),
    "tripled": {"train": partial(magnified, 3.0)},
    "scaled": {"train": scaled},
    "offset": {"train": lambda model, *rest: plain(lambda x, y: model(x, y) + 0.01, *rest)},
    "mixed": {"model": lambda: mlp(loss=mixed)},
    "velocity": {"model": lambda: mlp(loss=partial(mixed, velocity=True))},
    "cosines": around(lambda _, x: normalize(x) @ normalize(x.flip(1)).T @ x),
    "products": around(lambda _, x: x @ x.flip(1).T @ x),
    "less": around(lambda _, x: x - reduce(lambda y, _: y.sin(), range(30), x)),
    "itself": around(lambda _, x: x - 0),
    "nothing_dropped": {"model": lambda: mlp(nn.Identity())},
    "deep": {"model": lambda: mlp(nn.Linear(8, 8))},
    "own": {"optimizer": lambda p: setattr(Own, "digits", 9) or Own(p, 0.1, 0.9)},
    "own_coarse": {"optimizer": lambda p: setattr(Own, "digits", 1) or Own(p, 0.1, 0.9)},
    "following": {**FROZEN, "train": partial(following, 0.1)},
    "following_less": {**FROZEN, "train": partial(following, 0.05)},
}


def run(name):
    training = TRAININGS[name.rstrip("+")]
    torch.manual_seed(0)
    model = training.get("model", mlp)()
    make = training.get("optimizer", lambda parameters: torch.optim.AdamW(parameters, 1e-2))
    optimizer = make(model.parameters())
    draws = torch.Generator().manual_seed(3)
    moved = {"perturb": 3} if name.endswith("+") else {}
    with Capture(name, model, optimizer, steps=training.get("steps", [0, 1]), **moved) as capture:
        for step in range(3):
            x = torch.randn(6, 5, generator=draws).to(training.get("dtype", torch.float32))
            y = torch.randint(0, 3, (6,), generator=draws)
            loss = training.get("train", plain)(model, optimizer, x, y, step)
            capture.step(loss=loss, batch={"x": x, "y": y})


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(name)
    print("{}")
