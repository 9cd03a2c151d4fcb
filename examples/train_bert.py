"""The BERT of examples/bert.py, trained in a framework from the same weights, and captured.

    PYTHON examples/train_bert.py FRAMEWORK FOLDER [--optimizer adamw] [--lr 1e-3] [--steps 100] ...

FRAMEWORK is torch, oneflow, paddle or mindspore, and PYTHON an interpreter that has it (`refkernels
env list` names them). Optimizer, schedule and clipping are the framework's own; --help tells the
options. Batches have 8 rows, and step s takes batch s mod 10; with more --rows, a step takes as
many consecutive batches as make them. FOLDER is what `refkernels align` reads; prints the losses as
JSON. Needs capture.py (refkernels/) on its path: it is found beside this file's folder, or beside
the file.
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
            losses = cross_entropy(logits, labels, reduction="none").reshape((-1,))
            return (losses * weights).sum() / (weights.sum() + self.eps)

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
        for layer in (Attention, Block, MaskedLMLoss, Bert):
            setattr(layer, call, layer.forward)
            del layer.forward
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
    layer, _, part = name.rpartition(".")
    base = NAMES[layer]
    return base if base in ("emb.word", "emb.pos", "emb.type") else f"{base}.{ENDS[part]}"


def exempt(name):
    key = key_of(name)
    return any(part in key for part in EXEMPT)


def like_torch(args, api, turned_linear):
    """The model in torch and oneflow; in paddle where `turned_linear`, whose linear weights are
    transposed."""
    nn = api.nn
    base = nn.Layer if turned_linear else nn.Module
    parameter = (
        (lambda array: api.create_parameter(list(array.shape), args.dtype))
        if turned_linear
        else (lambda array: nn.Parameter(api.tensor(array.astype(args.dtype))))
    )
    epsilon = "epsilon" if turned_linear else "eps"
    softmax = (lambda: nn.Softmax(axis=-1)) if turned_linear else (lambda: nn.Softmax(dim=-1))
    turn = (
        (lambda y, axes: y.transpose(axes)) if turned_linear else (lambda y, axes: y.permute(*axes))
    )
    if turned_linear:
        api.set_default_dtype(args.dtype)
    model = model_of(
        nn, base, nn.Linear, lambda: nn.LayerNorm(WIDTH, **{epsilon: EPS}), "forward", softmax,
        turn, parameter, nn.GELU, nn.functional.cross_entropy,
    )  # fmt: skip
    if not turned_linear:
        model = model.to(getattr(api, args.dtype)).to(args.device)
    weights, _ = data()
    for name, p in model.named_parameters():
        array = weights[key_of(name)].astype(args.dtype)
        linear = name.endswith(".weight") and array.ndim == 2 and "emb" not in key_of(name)
        array = array.T.copy() if turned_linear and linear else array
        if turned_linear:
            p.set_value(array)
        else:
            with api.no_grad():
                p.copy_(api.tensor(array).to(args.device))
    return model


def weighed(losses, shares):
    """The objective of a micro-batch: its two losses, by their shares of the step's."""
    masked, sentence = losses
    return masked * shares[0] + sentence * shares[1]


def groups_of(args, model):
    """The parameter groups of torch and oneflow: those that are decayed, and the exempt."""
    named = list(model.named_parameters())
    parts = [([p for _, p in named], {})]
    if args.optimizer in ("adamw", "lamb"):
        parts = [
            ([p for name, p in named if not exempt(name)], {"weight_decay": DECAY}),
            ([p for name, p in named if exempt(name)], {"weight_decay": 0.0}),
        ]
    if args.graph and args.clip:  # oneflow's graphs clip each group by its own norm
        clipping = {"clip_grad_max_norm": args.clip, "clip_grad_norm_type": 2.0}
        alone = args.clip_scope == "parameter"
        parts = [
            (group, {**decay, **clipping})
            for params, decay in parts
            for group in ([[p] for p in params] if alone else [params])
        ]
    return [{"params": params, "lr": args.lr, **changes} for params, changes in parts]


def with_torch(args, api):
    """The training in torch, and in oneflow, which is used in the same way."""
    model, optim = like_torch(args, api, False), api.optim
    groups, schedulers = groups_of(args, model), optim.lr_scheduler
    optimizer = {
        "sgd": lambda: optim.SGD(groups, lr=args.lr, momentum=args.momentum),
        "adam": lambda: optim.Adam(groups, lr=args.lr),
        "adamw": lambda: optim.AdamW(groups, lr=args.lr),
        "lamb": lambda: optim.LAMB(groups, lr=args.lr, eps=1e-6),
    }[args.optimizer]()

    def clip():
        all_of_them = [p for p in model.parameters() if p.grad is not None]
        alone = args.clip_scope == "parameter"
        for group in [[p] for p in all_of_them] if alone else [all_of_them]:
            api.nn.utils.clip_grad_norm_(group, args.clip)

    if args.planted:
        from planted_bert import plant

        optimizer, clip = plant(args.planted, model, optimizer, clip)
    scheduler, decay_steps = None, args.total - args.warmup
    if args.warmup and args.framework == "torch":
        warm = schedulers.LinearLR(optimizer, FROM, total_iters=args.warmup)
        decay = schedulers.PolynomialLR(optimizer, decay_steps)
        scheduler = schedulers.SequentialLR(optimizer, [warm, decay], [args.warmup])
    elif args.warmup:
        decay = schedulers.PolynomialLR(optimizer, decay_steps, 0.0)
        scheduler = schedulers.WarmUpLR(decay, FROM, args.warmup, "linear", warmup_prefix=True)
    if args.graph:
        return model, optimizer, as_graph(api, model, optimizer, scheduler), api.tensor

    kind = args.device.partition(":")[0]
    if args.tf32:
        api.set_float32_matmul_precision("high")

    def step(parts):
        optimizer.zero_grad()
        losses = []
        for batch, shares in parts:
            with api.autocast(kind, api.bfloat16) if args.amp else contextlib.nullcontext():
                loss = weighed(model(*batch), shares)
            loss.backward()
            losses.append(loss.detach())
        if args.clip:
            clip()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        return losses

    return model, optimizer, step, lambda array: api.tensor(array).to(args.device)


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
    return lambda parts: [graph(*batch) for batch, _ in parts]


def with_paddle(args, api):
    model, optim = like_torch(args, api, True), api.optimizer
    alone = args.clip_scope == "parameter"
    kind = api.nn.ClipGradByNorm if alone else api.nn.ClipGradByGlobalNorm
    rate = args.lr
    if args.warmup:
        decay = optim.lr.PolynomialDecay(args.lr, args.total - args.warmup, 0.0, 1.0)
        rate = optim.lr.LinearWarmup(decay, args.warmup, FROM * args.lr, args.lr)
    common = {
        "learning_rate": rate, "parameters": model.parameters(),
        "grad_clip": kind(args.clip) if args.clip else None,
    }  # fmt: skip
    exempt_names = {p.name for name, p in model.named_parameters() if exempt(name)}
    optimizer = {
        "sgd": lambda: optim.Momentum(momentum=args.momentum, **common),
        "adam": lambda: optim.Adam(**common),
        "adamw": lambda: optim.AdamW(
            weight_decay=DECAY,
            apply_decay_param_fun=lambda name: name not in exempt_names,
            **common,
        ),
        "lamb": lambda: optim.Lamb(
            lamb_weight_decay=DECAY,
            exclude_from_weight_decay_fn=lambda p: p.name in exempt_names,
            **common,
        ),
    }[args.optimizer]()

    def step(parts):
        losses = []
        for batch, shares in parts:
            loss = weighed(model(*batch), shares)
            loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        optimizer.clear_grad()
        if args.warmup:
            rate.step()
        return losses

    return model, optimizer, step, api.to_tensor


def with_mindspore(args, api):
    nn, ops, Tensor = api.nn, api.ops, api.Tensor
    api.set_device("CPU")
    api.set_context(mode=api.PYNATIVE_MODE)
    model = model_of(
        nn, nn.Cell, nn.Dense, lambda: nn.LayerNorm((WIDTH,), epsilon=EPS), "construct",
        lambda: nn.Softmax(axis=-1), lambda y, axes: y.transpose(axes),
        lambda array: api.Parameter(Tensor(array.astype(args.dtype)), name="mlm_bias"),
        lambda: nn.GELU(approximate=False), ops.cross_entropy,
    )  # fmt: skip
    if args.dtype == "float64":  # nn.CrossEntropyLoss takes float16 and float32 only

        class CrossEntropyLoss(nn.Cell):
            def construct(self, logits, labels):
                return ops.cross_entropy(logits, labels)

        model.sentence = CrossEntropyLoss()
    weights, _ = data()
    for name, p in model.parameters_and_names():
        p.set_dtype(getattr(api, args.dtype))
        p.set_data(Tensor(weights[key_of(name)].astype(args.dtype)))
    named = list(model.parameters_and_names())
    free = [p for _, p in named]
    groups = [
        {"params": [p for name, p in named if not exempt(name)], "weight_decay": DECAY},
        {"params": [p for name, p in named if exempt(name)], "weight_decay": 0.0},
    ]
    rate, decay_steps = args.lr, args.total - args.warmup
    if args.warmup:
        rising = [args.lr * (FROM + (1 - FROM) * t / args.warmup) for t in range(args.warmup)]
        rate = rising + nn.polynomial_decay_lr(args.lr, 0.0, decay_steps, 1, decay_steps, 1.0)
    optimizer = {
        "sgd": lambda: nn.Momentum(free, rate, args.momentum),
        "adam": lambda: nn.Adam(free, rate),
        "adamw": lambda: nn.AdamWeightDecay(groups, rate),
    }[args.optimizer]()
    gradients = api.value_and_grad(
        lambda shares, *batch: weighed(model(*batch), shares), None, optimizer.parameters
    )

    def clipped(grads):
        if args.clip_scope == "parameter":
            return tuple(ops.clip_by_norm(grad, args.clip) for grad in grads)
        return ops.clip_by_global_norm(grads, args.clip)

    def step(parts):
        losses, total = [], None
        for batch, shares in parts:
            loss, grads = gradients(shares, *batch)
            losses.append(loss)
            total = grads if total is None else tuple(map(ops.add, total, grads))
        optimizer(clipped(total) if args.clip else total)
        return losses

    return model, optimizer, step, Tensor


TRAININGS = {
    "torch": with_torch, "oneflow": with_torch, "paddle": with_paddle, "mindspore": with_mindspore,
}  # fmt: skip


def batches_of(args, tensor):
    """For each step its micro-batches, on the device, and the share of each in the two losses."""
    _, batches = data()
    held = batches["ids"].shape[1]  # rows of a batch in the file
    shuffled = np.random.default_rng(args.permute)

    def arrays(now):
        rows = len(now["ids"])
        order = np.tile(np.arange(LENGTH), (rows, 1))
        keep = np.where(now["mask"], 0.0, -10000.0)[:, None, None, :].astype(args.dtype)
        places = (np.arange(rows)[:, None] * LENGTH + now["positions"]).reshape(-1)
        return (
            now["ids"], now["types"], order, keep, places, now["labels"].reshape(-1),
            now["weights"].reshape(-1).astype(args.dtype), np.arange(rows) * LENGTH, now["next"],
        )  # fmt: skip

    micro = args.micro or args.rows
    for step in range(args.steps):
        taken = [(step * (args.rows // held) + i) % 10 for i in range(args.rows // held)]
        full = {name: np.concatenate(array[taken]) for name, array in batches.items()}
        if args.permute is not None:
            order = shuffled.permutation(args.rows)
            full = {name: array[order] for name, array in full.items()}
        parts = []
        for first in range(0, args.rows, micro):
            at = 0 if args.same_shard else first
            now = {name: array[at : at + micro] for name, array in full.items()}
            share = micro / args.rows
            counted = (now["weights"].sum() + 1e-5) / (full["weights"].sum() + 1e-5)
            shares = (float(counted) if args.mean_over == "tokens" else share, share)
            inputs = arrays(now)
            if args.framework == "mindspore":
                inputs = [x.astype(np.int32) if x.dtype.kind == "i" else x for x in inputs]
            parts.append(([tensor(x) for x in inputs], shares))
        yield parts


OPTIONS = """
--optimizer     sgd, adam, adamw, lamb; the last two decay by 0.01, norms and biases exempt
--lr            learning rate
--momentum      momentum of sgd
--steps         number of steps
--captured      steps whose tensors are kept
--only          the layers whose tensors are kept, globs with commas between
--warmup        steps of a linear warm-up from lr/10; then a polynomial decay to 0 at --total
--total         steps of that schedule (default: --steps)
--clip          the norm to clip to
--clip-scope    model or parameter: the norm of all gradients, or of each
--rows          rows of a step, a multiple of 8
--micro         rows of a micro-batch, over which gradients are accumulated
--mean-over     micro or tokens: the mean of the micro-batches' means, or over a step's tokens
--same-shard    every micro-batch is the first one, as where every rank reads the same shard
--permute       a seed: a batch's rows in another order, which changes the rounding alone
--perturb       a seed: one weight is moved by one ulp
--dtype         float32 or float64
--threads       torch: threads of an operation
--amp           torch: autocast to bfloat16
--device        torch: cpu or cuda
--tf32          torch: products of float32 matrices may use TF32
--graph         oneflow: nn.Graph
--planted       torch: the fault, by its name in planted_bert.py
"""
DEFAULTS = {
    "optimizer": "sgd", "lr": 1e-3, "momentum": 0.9, "steps": 100, "captured": [0, 1, 2],
    "only": "*", "warmup": 0, "total": 0, "clip": 0.0, "clip_scope": "model", "rows": 8, "micro": 0,
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
        option, meaning = line.split(maxsplit=1)
        name = option[2:].replace("-", "_")
        value = DEFAULTS[name]
        parsing = {"action": "store_true"} if value is False else {"default": value}
        if name in CHOICES:
            parsing["choices"] = CHOICES[name]
        elif value is not False:
            parsing["type"] = int if value is None or name == "captured" else type(value)
            parsing.update({"nargs": "*"} if name == "captured" else {})
        parser.add_argument(option, help=meaning, **parsing)
    args = parser.parse_args(words)
    args.total = args.total or args.steps
    is_torch, is_oneflow = args.framework == "torch", args.framework == "oneflow"
    for wrong, why in (
        ((args.planted or args.amp or args.threads or args.tf32 or args.device != "cpu")
         and not is_torch, "--planted, --amp, --threads, --tf32 and --device are for torch only"),
        (args.graph and not is_oneflow, "--graph is for oneflow only"),
        (args.graph and args.micro, "--graph takes the rows of a step at once, without --micro"),
        (args.optimizer == "lamb" and args.framework in ("torch", "mindspore"),
         f"{args.framework} has no LAMB for CPUs"),
        (args.dtype == "float64" and args.optimizer == "adam" and args.framework == "mindspore",
         "mindspore's Adam takes float16 and float32 only"),
        (args.rows % 8 or args.rows % (args.micro or 1),
         "--rows must be a multiple of 8 and of --micro"),
        (args.warmup and args.total <= args.warmup, "--total must be more than --warmup"),
    ):  # fmt: skip
        parser.error(why) if wrong else None
    return args


def main(words=None):
    args = options(words)
    api = __import__(args.framework)
    if args.threads:
        api.set_num_threads(args.threads)
    model, optimizer, step, tensor = TRAININGS[args.framework](args, api)
    printed = []
    chosen = {"steps": args.captured, "only": args.only.split(","), "perturb": args.perturb}
    chosen["hash_every"] = 1 if args.captured else 0
    with Capture(args.folder, model, optimizer, **chosen) as capture:
        for parts in batches_of(args, tensor):
            losses, values = step(parts), {}
            batch = {
                f"{name}{i}": part[at]
                for i, (part, _) in enumerate(parts)
                for name, at in (("ids", 0), ("labels", 5))
            }
            if len(losses) > 1:
                values.update({f"loss_{i}": float(part) for i, part in enumerate(losses)})
            loss = losses[0] if len(losses) == 1 else sum(losses[1:], losses[0])
            capture.step(loss=loss, batch=batch, **values)
            printed.append(float(loss))
    print(json.dumps(printed))


if __name__ == "__main__":
    main()
