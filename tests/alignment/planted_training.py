"""A small transformer in torch, trained without a fault, or with one that align has to name.

    python planted_training.py STEPS[:CAPTURED] NAME[:STEPS] ...

Of the steps, the first CAPTURED are captured, 3 by default; a NAME may end sooner. Each NAME is a
folder to capture to, and the name of what is planted ("right" for nothing). Prints the losses of
each as JSON. Everything else is the same: weights, batches, threads.
"""

import json
import math
import sys

import numpy as np
import torch
from capture import Capture

torch.set_num_threads(1)
WIDTH, WORDS, LENGTH, ROWS = 32, 60, 8, 4
nn, F = torch.nn, torch.nn.functional


class GELU(nn.Module):
    """A port that computes by tanh without saying so."""

    def forward(self, x):
        return F.gelu(x, approximate="tanh")


class LayerNorm(nn.LayerNorm):
    """A port whose eps is not the one it declares."""

    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, 1e-5)


class Adam(torch.optim.Optimizer):
    """An Adam that can be wrong, of a user's own names."""

    def __init__(self, params, lr, betas, eps, wrong):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})
        self.wrong = wrong

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    averages = {"average": torch.zeros_like(p), "squares": torch.zeros_like(p)}
                    state.update(step=torch.tensor(0.0), **averages)
                state["step"] += 1
                t = int(state["step"])
                m, v = state["average"], state["squares"]
                m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                c1, c2 = 1 - beta1**t, 1 - beta2**t
                if self.wrong == "no_bias_correction":
                    c1 = c2 = 1.0
                root = math.sqrt(c2)
                below = v.sqrt() / root + group["eps"]
                if self.wrong == "adam_eps_hat":
                    below = (v.sqrt() + group["eps"]) / root
                elif self.wrong == "adam_eps_inside":
                    below = (v / c2 + group["eps"]).sqrt()
                p.addcdiv_(m, below, value=-group["lr"] / c1)


class Block(nn.Module):
    def __init__(self, planted):
        super().__init__()
        eps = 1e-5 if planted == "layernorm_eps" else 1e-12
        norm = LayerNorm if planted == "layernorm_eps_hidden" else nn.LayerNorm
        self.scale = 1 / WIDTH if planted == "attention_scale" else 1 / math.sqrt(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.soft = nn.Softmax(dim=-1)
        self.norm1, self.norm2 = norm(WIDTH, eps=eps), norm(WIDTH, eps=eps)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        by_tanh = nn.GELU(approximate="tanh") if planted == "tanh_gelu_declared" else nn.GELU()
        self.act = GELU() if planted == "tanh_gelu" else by_tanh

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(-1, -2) * self.scale
        x = self.norm1(x + self.out(self.soft(scores) @ self.value(x)))
        return self.norm2(x + self.down(self.act(self.up(x))))


class Model(nn.Module):
    def __init__(self, planted):
        super().__init__()
        self.planted = planted
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-5 if planted == "layernorm_eps" else 1e-12)
        self.blocks = nn.ModuleList(Block(planted) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(WORDS))
        smoothing = 0.1 if planted == "label_smoothing" else 0.0
        reduction = "sum" if planted == "loss_sum" else "mean"
        self.loss = nn.CrossEntropyLoss(reduction=reduction, label_smoothing=smoothing)

    def forward(self, ids, labels):
        x = self.norm(self.embed(ids))
        for block in self.blocks:
            x = block(x)
        table = self.embed.weight
        if self.planted == "tied_gradient_dropped":
            table = table.detach()
        logits = (x @ table.T + self.bias).reshape(-1, WORDS)
        return self.loss(logits, labels.reshape(-1))


def optimizer_of(planted, model):
    kept = [p for name, p in model.named_parameters() if "norm" in name or "bias" in name]
    others = [p for name, p in model.named_parameters() if not ("norm" in name or "bias" in name)]
    if planted in ("no_bias_correction", "adam_eps_hat", "adam_eps_inside", "right_adam"):
        kind = Adam if planted == "adam_eps_inside" else type("Own", (Adam,), {})
        return kind([*others, *kept], 1e-3, (0.9, 0.999), 1e-8, planted)
    if planted == "plain_adam":
        return torch.optim.Adam([*others, *kept], 1e-3)
    if planted in ("sgd", "momentum_nesterov", "momentum_dampening"):
        return torch.optim.SGD(
            [*others, *kept], 1e-2, momentum=0.9, nesterov=planted == "momentum_nesterov",
            dampening=0.1 if planted == "momentum_dampening" else 0.0,
        )  # fmt: skip
    decay = 0.01 if planted == "decay_on_excluded" else 0.0
    groups = [{"params": others, "weight_decay": 0.01}, {"params": kept, "weight_decay": decay}]
    kind = torch.optim.Adam if planted == "coupled_decay" else torch.optim.AdamW
    optimizer = kind(groups, 1e-3, eps=1e-6 if planted == "adam_eps" else 1e-8)
    for p in model.parameters() if planted == "steps_kept" else ():  # of an earlier training
        moments = {name: torch.zeros_like(p) for name in ("exp_avg", "exp_avg_sq")}
        optimizer.state[p] = {"step": torch.tensor(3.0), **moments}
    return optimizer


UNCLIPPED = (
    "clip_left_out", "loss_scale_left_in", "scaled_by_8", "scaled_by_3", "scaled_by_6",
    "halves_right", "halves_sum",
)  # fmt: skip
SCALE = 65536.0  # of a loss, against underflow


def clip(planted, model, optimizer):
    if planted in UNCLIPPED or planted.startswith(("masked", "ranks")):
        return
    if planted == "clip_each_group":
        for group in optimizer.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], 0.5)
    elif planted == "clip_each_parameter":
        for p in model.parameters():
            torch.nn.utils.clip_grad_norm_([p], 0.5)
    else:
        clipped = list(model.parameters())[planted == "clip_but_first" :]
        torch.nn.utils.clip_grad_norm_(clipped, 1.0 if planted == "clip_at_one" else 0.5)


def words(steps):
    rng, shape = np.random.default_rng(7), (steps + 1, ROWS, LENGTH)
    return [torch.from_numpy(rng.integers(0, WORDS, shape)) for _ in range(2)]


def train(folder, planted, steps, captured=(0, 1, 2), ends=0):
    """`planted`: what is wrong, or NAME@SEED: that run with one weight moved by an ulp."""
    planted, _, seed = planted.partition("@")
    perturb = int(seed) if seed else 3 if planted == "perturbed" else None
    torch.manual_seed(1)
    model = Model(planted)
    optimizer = optimizer_of(planted, model)
    data, names = words(steps)
    losses = []
    with Capture(folder, model, optimizer, steps=captured, perturb=perturb) as capture:
        for step in range(ends or steps):
            rate = 1e-3 * min(max(step - (planted == "late_schedule"), 0) + 1, 10) / 10
            for group in optimizer.param_groups:
                group["lr"] = rate
            at = max(step - 1, 0) if planted == "stale_batch" else step
            ids, labels = data[at], labels_of(planted, names[at])
            optimizer.zero_grad()
            if planted.startswith(("halves", "masked_")):
                loss = accumulated(planted, model, ids, labels)
            else:
                loss = model(ids, labels)
                numbered = planted.startswith(("scaled_by_", "gradient_times_"))
                factor = float(planted[-1]) if numbered else SCALE if "scale" in planted else 1.0
                (loss * factor).backward()
            early = planted == "clip_before_unscale"
            if early:
                clip(planted, model, optimizer)
            for p in model.parameters() if early or planted.startswith("scaled") else ():
                p.grad /= factor
            if not early:
                clip(planted, model, optimizer)
            optimizer.step()
            capture.step(loss=loss, batch={"ids": ids, "labels": labels})
            losses.append(loss.item())
    return losses


def labels_of(planted, labels):
    """The second half of the rows has fewer labels."""
    masked = labels.clone()
    if "mask" in planted:
        masked[ROWS // 2 :, 3:] = -100
    return masked


def accumulated(planted, model, ids, labels):
    """Two backward passes for one: each half's mean by its number of words, or what is wrong."""
    total = 0.0
    for half in (slice(None, ROWS // 2), slice(ROWS // 2, None)):
        right = float((labels[half] >= 0).sum() / (labels >= 0).sum())
        share = {"halves_sum": 1.0, "masked_means": 0.5}.get(planted, right)
        loss = model(ids[half], labels[half])
        (loss * share).backward()
        total += loss.detach() * right
    return total


def train_ranks(folder, planted, steps, captured=(0, 1, 2), ends=0):
    """What two ranks hold and do, in one process: each has its half of the rows."""
    planted, _, seed = planted.partition("@")
    torch.manual_seed(1)
    models = [Model(planted), Model(planted)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [optimizer_of(planted, model) for model in models]
    data, names = words(steps)
    losses, captures = [], []
    for rank, (model, optimizer) in enumerate(zip(models, optimizers)):  # noqa: B905
        options = {"steps": captured, "rank": rank, "world_size": 2}
        options["perturb"] = int(seed) if seed else None
        captures.append(Capture(folder, model, optimizer, **options))
    with captures[0], captures[1]:
        for step in range(ends or steps):
            for optimizer in optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = 1e-3 * min(step + 1, 10) / 10
                optimizer.zero_grad()
            ids, labels = data[step], labels_of(planted, names[step])
            halves = [slice(rank, None, 2) for rank in (0, 1)]
            if "mask" in planted:
                halves = [slice(None, ROWS // 2), slice(ROWS // 2, None)]
            if planted == "ranks_same_shard":
                halves[1] = halves[0]
            own, weights = [], []
            for model, half in zip(models, halves):  # noqa: B905
                own.append(model(ids[half], labels[half]))
                own[-1].backward()
                weights.append(float((labels[half] >= 0).sum() / (labels >= 0).sum()))
            weights = {"ranks_sum": [1.0, 1.0], "ranks_masked": weights}.get(planted, [0.5, 0.5])
            pairs = zip(*(model.parameters() for model in models))  # noqa: B905
            for pair in pairs if planted != "ranks_own" else ():
                reduced = weights[0] * pair[0].grad + weights[1] * pair[1].grad
                for p in pair:
                    p.grad.copy_(reduced)
            for rank, optimizer in enumerate(optimizers):
                optimizer.step()
                batch = {"ids": ids[halves[rank]], "labels": labels[halves[rank]]}
                captures[rank].step(loss=own[rank], batch=batch)
            losses.append(sum(own).item() / 2)
    return losses


if __name__ == "__main__":
    steps, *runs = sys.argv[1:]
    steps, _, first = steps.partition(":")
    captured, losses = range(int(first or 3)), {}
    for place, _, ends in (run.partition(":") for run in runs):
        name = place.split("/")[-1]
        run = train_ranks if name.startswith("ranks") else train
        losses[place] = run(place, name, int(steps), captured, int(ends or 0))
    print(json.dumps(losses))
