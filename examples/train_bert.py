"""The BERT of examples/bert.py, trained in a framework from the same weights, and captured.

    PYTHON examples/train_bert.py FRAMEWORK FOLDER [--optimizer adamw] [--lr 1e-3] [--steps 100] ...

FRAMEWORK is torch, oneflow, paddle or mindspore, and PYTHON an interpreter that has it (`refkernels
env list` names them). Optimizer, schedule and clipping are the framework's own; --help tells the
options. Batches have 8 rows, and step s takes batch s mod 10, or the next batches to make --rows.
FOLDER is what `refkernels align` reads; prints the losses as JSON. Needs capture.py (refkernels/)
on its path: it is found beside this file's folder, or beside the file.
"""

import argparse
import contextlib
import json
import math
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "refkernels")]
from capture import Capture  # noqa: E402

WIDTH, INNER, HEADS, WORDS, LENGTH, LAYERS, EPS = 64, 256, 2, 200, 16, 2, 1e-12
SIZE = WIDTH // HEADS
EXEMPT = (".ln", ".b", "mlm.bias")  # from weight decay: norms and biases
DECAY, FROM = 0.01, 0.1  # weight decay of adamw and lamb; where a warm-up begins, of the rate


def data():
    folder = HERE / "data"
    with np.load(folder / "bert_weights.npz", allow_pickle=False) as file:
        weights = {name: file[name] for name in file.files}
    with np.load(folder / "bert_batches.npz", allow_pickle=False) as file:
        batches = {name: file[name].astype(np.int64) for name in file.files}
    return weights, batches


def model_of(nn, base, linear, norm, call, softmax, turn, constant, gelu, cross_entropy):
    """The model as a class of the framework's layers. `call` is the name of its forward method,
    `turn` transposes, `constant` makes a parameter of an array."""

    class Attention(base):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (linear(WIDTH, WIDTH) for _ in range(4))
            self.soft = softmax()

        def forward(self, x, keep):
            rows = x.shape[0]

            def split(y):
                return turn(y.reshape((rows, LENGTH, HEADS, SIZE)), (0, 2, 1, 3))

            q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
            scores = q @ turn(k, (0, 1, 3, 2)) * (1.0 / math.sqrt(SIZE)) + keep
            mixed = turn(self.soft(scores) @ v, (0, 2, 1, 3))
            return self.o(mixed.reshape((rows, LENGTH, WIDTH)))

    class Block(base):
        def __init__(self):
            super().__init__()
            self.attention = Attention()
            self.ln1, self.ln2 = norm(), norm()
            self.f1, self.f2 = linear(WIDTH, INNER), linear(INNER, WIDTH)
            self.act = gelu()

        def forward(self, x, keep):
            x = self.ln1(x + self.attention(x, keep))
            return self.ln2(x + self.f2(self.act(self.f1(x))))

    class MaskedLMLoss(base):
        """BERT's: a mean weighted by 0 and 1, with its 1e-5."""

        def __init__(self):
            super().__init__()
            self.eps = 1e-5

        def forward(self, logits, labels, weights):
            each = cross_entropy(logits, labels, reduction="none").reshape((-1,))
            return (each * weights).sum() / (weights.sum() + self.eps)

    class Bert(base):
        def __init__(self):
            super().__init__()
            self.word = nn.Embedding(WORDS, WIDTH)
            self.pos = nn.Embedding(LENGTH, WIDTH)
            self.sort = nn.Embedding(2, WIDTH)
            self.ln = norm()
            self.l0, self.l1 = Block(), Block()
            self.mlm, self.mlm_act, self.mlm_ln = linear(WIDTH, WIDTH), gelu(), norm()
            self.pool, self.tanh, self.nsp = linear(WIDTH, WIDTH), nn.Tanh(), linear(WIDTH, 2)
            self.mlm_bias = constant(np.zeros(WORDS))
            self.masked, self.sentence = MaskedLMLoss(), nn.CrossEntropyLoss()

        def forward(self, ids, types, order, keep, places, labels, weights, firsts, following):
            x = self.ln(self.word(ids) + self.sort(types) + self.pos(order))
            x = self.l1(self.l0(x, keep), keep).reshape((-1, WIDTH))
            hidden = self.mlm_ln(self.mlm_act(self.mlm(x[places])))
            table = self.word.weight if hasattr(self.word, "weight") else self.word.embedding_table
            logits = hidden @ turn(table, (1, 0)) + self.mlm_bias
            next_or_not = self.nsp(self.tanh(self.pool(x[firsts])))
            return self.masked(logits, labels, weights), self.sentence(next_or_not, following)

    if call != "forward":
        for one in (Attention, Block, MaskedLMLoss, Bert):
            setattr(one, call, one.forward)
            del one.forward
    return Bert()


NAMES = {  # of the layers here, of the weights' file
    "word": "emb.word", "pos": "emb.pos", "sort": "emb.type", "ln": "emb.ln", "mlm": "mlm",
    "mlm_ln": "mlm.ln", "pool": "pool", "nsp": "nsp", "mlm_bias": "mlm.bias",
    **{
        f"l{i}.{own}": f"l{i}.{own.rpartition('.')[2]}"
        for i in range(LAYERS)
        for own in (*(f"attention.{one}" for one in "qkvo"), "ln1", "ln2", "f1", "f2")
    },
}  # fmt: skip
ENDS = {"weight": "w", "gamma": "w", "embedding_table": "w", "bias": "b", "beta": "b"}


def key_of(name):
    """A parameter's name in the weights' file."""
    if name in NAMES:
        return NAMES[name]
    layer, _, own = name.rpartition(".")
    base = NAMES[layer]
    return base if base in ("emb.word", "emb.pos", "emb.type") else f"{base}.{ENDS[own]}"


def exempt(name):
    key = key_of(name)
    return any(part in key for part in EXEMPT)


def like_torch(asked, api, turned_linear):
    """torch and oneflow; paddle where turned_linear."""
    nn = api.nn
    base = nn.Layer if turned_linear else nn.Module
    parameter = (
        (lambda array: api.create_parameter(list(array.shape), asked.dtype))
        if turned_linear
        else (lambda array: nn.Parameter(api.tensor(array.astype(asked.dtype))))
    )
    epsilon = "epsilon" if turned_linear else "eps"
    softmax = (lambda: nn.Softmax(axis=-1)) if turned_linear else (lambda: nn.Softmax(dim=-1))
    turn = (
        (lambda y, axes: y.transpose(axes)) if turned_linear else (lambda y, axes: y.permute(*axes))
    )
    if turned_linear:
        api.set_default_dtype(asked.dtype)
    model = model_of(
        nn, base, nn.Linear, lambda: nn.LayerNorm(WIDTH, **{epsilon: EPS}), "forward", softmax,
        turn, parameter, nn.GELU, nn.functional.cross_entropy,
    )  # fmt: skip
    if not turned_linear:
        model = model.to(getattr(api, asked.dtype)).to(asked.device)
    weights, _ = data()
    for name, p in model.named_parameters():
        array = weights[key_of(name)].astype(asked.dtype)
        linear = name.endswith(".weight") and array.ndim == 2 and "emb" not in key_of(name)
        array = array.T.copy() if turned_linear and linear else array
        if turned_linear:
            p.set_value(array)
        else:
            with api.no_grad():
                p.copy_(api.tensor(array).to(asked.device))
    return model


def weighed(losses, shares):
    """The objective of a micro-batch: its two losses, by their shares of the step's."""
    masked, sentence = losses
    return masked * shares[0] + sentence * shares[1]


def groups_of(asked, model):
    """Parameters as torch and oneflow take them: those that are decayed, and the exempt."""
    named = list(model.named_parameters())
    parts = [([p for _, p in named], {})]
    if asked.optimizer in ("adamw", "lamb"):
        parts = [
            ([p for name, p in named if not exempt(name)], {"weight_decay": DECAY}),
            ([p for name, p in named if exempt(name)], {"weight_decay": 0.0}),
        ]
    if asked.graph and asked.clip:  # oneflow's graphs clip each group by its own norm
        own = {"clip_grad_max_norm": asked.clip, "clip_grad_norm_type": 2.0}
        alone = asked.clip_scope == "parameter"
        parts = [
            (some, {**how, **own})
            for params, how in parts
            for some in ([[p] for p in params] if alone else [params])
        ]
    return [{"params": params, "lr": asked.lr, **how} for params, how in parts]


def with_torch(asked, api):
    """torch, and oneflow, which is used alike."""
    model, optim = like_torch(asked, api, False), api.optim
    groups, schedulers = groups_of(asked, model), optim.lr_scheduler
    optimizer = {
        "sgd": lambda: optim.SGD(groups, lr=asked.lr, momentum=asked.momentum),
        "adam": lambda: optim.Adam(groups, lr=asked.lr),
        "adamw": lambda: optim.AdamW(groups, lr=asked.lr),
        "lamb": lambda: optim.LAMB(groups, lr=asked.lr, eps=1e-6),
    }[asked.optimizer]()

    def clip():
        all_of_them = [p for p in model.parameters() if p.grad is not None]
        alone = asked.clip_scope == "parameter"
        for some in [[p] for p in all_of_them] if alone else [all_of_them]:
            norm = api.nn.utils.clip_grad_norm_(some, asked.clip)
        return None if alone else norm

    if asked.planted:
        from planted_bert import plant

        optimizer, clip = plant(asked.planted, model, optimizer, clip)
    scheduler, rest = None, asked.total - asked.warmup
    if asked.warmup and asked.framework == "torch":
        warm = schedulers.LinearLR(optimizer, FROM, total_iters=asked.warmup)
        decay = schedulers.PolynomialLR(optimizer, rest)
        scheduler = schedulers.SequentialLR(optimizer, [warm, decay], [asked.warmup])
    elif asked.warmup:
        decay = schedulers.PolynomialLR(optimizer, rest, 0.0)
        scheduler = schedulers.WarmUpLR(decay, FROM, asked.warmup, "linear", warmup_prefix=True)
    if asked.graph:
        return model, optimizer, as_graph(api, model, optimizer, scheduler), api.tensor

    kind = asked.device.partition(":")[0]
    if asked.tf32:
        api.set_float32_matmul_precision("high")

    def step(parts):
        optimizer.zero_grad()
        losses = []
        for batch, shares in parts:
            with api.autocast(kind, api.bfloat16) if asked.amp else contextlib.nullcontext():
                loss = weighed(model(*batch), shares)
            loss.backward()
            losses.append(loss.detach())
        norm = clip() if asked.clip else None
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        return losses, {} if norm is None else {"clip_norm": norm}

    return model, optimizer, step, lambda array: api.tensor(array).to(asked.device)


def as_graph(api, model, optimizer, scheduler):
    """oneflow's static graph: forward, backward, clipping, update and schedule in one."""

    class Graph(api.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer, lr_sch=scheduler)

        def build(self, *batch):
            loss = weighed(self.model(*batch), (1.0, 1.0))
            loss.backward()
            return loss

    graph = Graph()
    return lambda parts: ([graph(*batch) for batch, _ in parts], {})


def with_paddle(asked, api):
    model, optim = like_torch(asked, api, True), api.optimizer
    alone = asked.clip_scope == "parameter"
    kind = api.nn.ClipGradByNorm if alone else api.nn.ClipGradByGlobalNorm
    rate = asked.lr
    if asked.warmup:
        decay = optim.lr.PolynomialDecay(asked.lr, asked.total - asked.warmup, 0.0, 1.0)
        rate = optim.lr.LinearWarmup(decay, asked.warmup, FROM * asked.lr, asked.lr)
    how = {
        "learning_rate": rate, "parameters": model.parameters(),
        "grad_clip": kind(asked.clip) if asked.clip else None,
    }  # fmt: skip
    kept = {p.name for name, p in model.named_parameters() if exempt(name)}
    optimizer = {
        "sgd": lambda: optim.Momentum(momentum=asked.momentum, **how),
        "adam": lambda: optim.Adam(**how),
        "adamw": lambda: optim.AdamW(
            weight_decay=DECAY, apply_decay_param_fun=lambda name: name not in kept, **how
        ),
        "lamb": lambda: optim.Lamb(
            lamb_weight_decay=DECAY, exclude_from_weight_decay_fn=lambda p: p.name in kept, **how
        ),
    }[asked.optimizer]()

    def step(parts):
        losses = []
        for batch, shares in parts:
            loss = weighed(model(*batch), shares)
            loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        optimizer.clear_grad()
        if asked.warmup:
            rate.step()
        return losses, {}

    return model, optimizer, step, api.to_tensor


def with_mindspore(asked, api):
    nn, ops, Tensor = api.nn, api.ops, api.Tensor
    api.set_device("CPU")
    api.set_context(mode=api.PYNATIVE_MODE)
    model = model_of(
        nn, nn.Cell, nn.Dense, lambda: nn.LayerNorm((WIDTH,), epsilon=EPS), "construct",
        lambda: nn.Softmax(axis=-1), lambda y, axes: y.transpose(axes),
        lambda array: api.Parameter(Tensor(array.astype(asked.dtype)), name="mlm_bias"),
        lambda: nn.GELU(approximate=False), ops.cross_entropy,
    )  # fmt: skip
    if asked.dtype == "float64":  # nn.CrossEntropyLoss takes float16 and float32 only

        class CrossEntropyLoss(nn.Cell):
            def construct(self, logits, labels):
                return ops.cross_entropy(logits, labels)

        model.sentence = CrossEntropyLoss()
    weights, _ = data()
    for name, p in model.parameters_and_names():
        p.set_dtype(getattr(api, asked.dtype))
        p.set_data(Tensor(weights[key_of(name)].astype(asked.dtype)))
    named = list(model.parameters_and_names())
    free = [p for _, p in named]
    groups = [
        {"params": [p for name, p in named if not exempt(name)], "weight_decay": DECAY},
        {"params": [p for name, p in named if exempt(name)], "weight_decay": 0.0},
    ]
    rate, rest = asked.lr, asked.total - asked.warmup
    if asked.warmup:
        rising = [asked.lr * (FROM + (1 - FROM) * t / asked.warmup) for t in range(asked.warmup)]
        rate = rising + nn.polynomial_decay_lr(asked.lr, 0.0, rest, 1, rest, 1.0)
    optimizer = {
        "sgd": lambda: nn.Momentum(free, rate, asked.momentum),
        "adam": lambda: nn.Adam(free, rate),
        "adamw": lambda: nn.AdamWeightDecay(groups, rate),
    }[asked.optimizer]()
    gradients = api.value_and_grad(
        lambda shares, *batch: weighed(model(*batch), shares), None, optimizer.parameters
    )

    def clipped(grads):
        if asked.clip_scope == "parameter":
            return tuple(ops.clip_by_norm(grad, asked.clip) for grad in grads)
        return ops.clip_by_global_norm(grads, asked.clip)

    def step(parts):
        losses, total = [], None
        for batch, shares in parts:
            loss, grads = gradients(shares, *batch)
            losses.append(loss)
            total = grads if total is None else tuple(map(ops.add, total, grads))
        optimizer(clipped(total) if asked.clip else total)
        return losses, {}

    return model, optimizer, step, Tensor


TRAININGS = {
    "torch": with_torch, "oneflow": with_torch, "paddle": with_paddle, "mindspore": with_mindspore,
}  # fmt: skip


def batches_of(asked, tensor):
    """For each step its micro-batches, on the device, and the share of each in the two losses."""
    _, batches = data()
    held = batches["ids"].shape[1]  # rows of a batch in the file
    shuffled = np.random.default_rng(asked.permute)

    def arrays(now):
        rows = len(now["ids"])
        order = np.tile(np.arange(LENGTH), (rows, 1))
        keep = np.where(now["mask"], 0.0, -10000.0)[:, None, None, :].astype(asked.dtype)
        places = (np.arange(rows)[:, None] * LENGTH + now["positions"]).reshape(-1)
        return (
            now["ids"], now["types"], order, keep, places, now["labels"].reshape(-1),
            now["weights"].reshape(-1).astype(asked.dtype), np.arange(rows) * LENGTH, now["next"],
        )  # fmt: skip

    micro = asked.micro or asked.rows
    for step in range(asked.steps):
        taken = [(step * (asked.rows // held) + i) % 10 for i in range(asked.rows // held)]
        whole = {name: np.concatenate(array[taken]) for name, array in batches.items()}
        if asked.permute is not None:
            order = shuffled.permutation(asked.rows)
            whole = {name: array[order] for name, array in whole.items()}
        parts = []
        for first in range(0, asked.rows, micro):
            at = 0 if asked.same_shard else first
            now = {name: array[at : at + micro] for name, array in whole.items()}
            share = micro / asked.rows
            counted = (now["weights"].sum() + 1e-5) / (whole["weights"].sum() + 1e-5)
            shares = (float(counted) if asked.mean_over == "tokens" else share, share)
            given = arrays(now)
            if asked.framework == "mindspore":
                given = [one.astype(np.int32) if one.dtype.kind == "i" else one for one in given]
            parts.append(([tensor(one) for one in given], shares))
        yield parts


OPTIONS = """
--optimizer     sgd, adam, adamw, lamb; the last two decay by 0.01, norms and biases exempt
--lr            learning rate
--momentum      of sgd
--steps         of training
--captured      steps whose tensors are kept
--warmup        steps of a linear warm-up from lr/10; then a polynomial decay to 0 at --total
--total         steps of that schedule (default: --steps)
--clip          the norm to clip to
--clip-scope    model or parameter: the norm of all gradients, or of each
--rows          of a step, a multiple of 8
--micro         rows of a micro-batch, over which gradients are accumulated
--mean-over     micro or tokens: the mean of the micro-batches' means, or over a step's tokens
--same-shard    every micro-batch is the first one, as where every rank reads the same shard
--permute       a seed: a batch's rows in another order, which rounds differently and no more
--perturb       a seed: one weight is moved by one ulp
--dtype         float32 or float64
--threads       torch: of an operation
--amp           torch: autocast to bfloat16
--device        torch: cpu or cuda
--tf32          torch: products of float32 matrices may use TF32
--graph         oneflow: nn.Graph
--planted       torch: what is wrong, by its name in planted_bert.py
"""
DEFAULTS = {
    "optimizer": "sgd", "lr": 1e-3, "momentum": 0.9, "steps": 100, "captured": [0, 1, 2],
    "warmup": 0, "total": 0, "clip": 0.0, "clip_scope": "model", "rows": 8, "micro": 0,
    "mean_over": "micro", "same_shard": False, "permute": None, "perturb": None,
    "dtype": "float32", "threads": 0, "amp": False, "device": "cpu", "tf32": False,
    "graph": False, "planted": "",
}  # fmt: skip
CHOICES = {
    "optimizer": ("sgd", "adam", "adamw", "lamb"), "clip_scope": ("model", "parameter"),
    "mean_over": ("micro", "tokens"), "dtype": ("float32", "float64"),
}  # fmt: skip


def options(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("framework", choices=sorted(TRAININGS))
    parser.add_argument("folder")
    for line in OPTIONS.strip().splitlines():
        option, told = line.split(maxsplit=1)
        name = option[2:].replace("-", "_")
        value = DEFAULTS[name]
        how = {"action": "store_true"} if value is False else {"default": value}
        if name in CHOICES:
            how["choices"] = CHOICES[name]
        elif value is not False:
            how["type"] = int if value is None or name == "captured" else type(value)
            how.update({"nargs": "*"} if name == "captured" else {})
        parser.add_argument(option, help=told, **how)
    asked = parser.parse_args(words)
    asked.total = asked.total or asked.steps
    is_torch, is_oneflow = asked.framework == "torch", asked.framework == "oneflow"
    for wrong, why in (
        ((asked.planted or asked.amp or asked.threads or asked.tf32 or asked.device != "cpu")
         and not is_torch, "an option is torch's"),
        (asked.graph and not is_oneflow, "--graph is oneflow's"),
        (asked.graph and asked.micro, "--graph takes the rows of a step at once"),
        (asked.optimizer == "lamb" and asked.framework in ("torch", "mindspore"),
         f"{asked.framework} has no LAMB for CPUs"),
        (asked.dtype == "float64" and asked.optimizer == "adam" and asked.framework == "mindspore",
         "mindspore's Adam takes float16 and float32 only"),
        (asked.rows % 8 or asked.rows % (asked.micro or 1), "--rows: a multiple of 8 and --micro"),
        (asked.warmup and asked.total <= asked.warmup, "--total: more than --warmup"),
    ):  # fmt: skip
        parser.error(why) if wrong else None
    return asked


def main(words=None):
    asked = options(words)
    api = __import__(asked.framework)
    if asked.threads:
        api.set_num_threads(asked.threads)
    model, optimizer, step, tensor = TRAININGS[asked.framework](asked, api)
    printed = []
    how = {"steps": asked.captured, "perturb": asked.perturb}
    how["hash_every"] = 1 if asked.captured else 0
    with Capture(asked.folder, model, optimizer, **how) as capture:
        for parts in batches_of(asked, tensor):
            losses, told = step(parts)
            batch = {
                f"{name}{i}": part[at]
                for i, (part, _) in enumerate(parts)
                for name, at in (("ids", 0), ("labels", 5))
            }
            if len(losses) > 1:
                told.update({f"loss_{i}": float(one) for i, one in enumerate(losses)})
            loss = losses[0] if len(losses) == 1 else sum(losses[1:], losses[0])
            capture.step(loss=loss, batch=batch, **told)
            printed.append(float(loss))
    print(json.dumps(printed))


if __name__ == "__main__":
    main()
