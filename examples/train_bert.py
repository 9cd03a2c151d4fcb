"""The BERT of examples/bert.py, trained in a framework from the same weights, and captured.

    PYTHON examples/train_bert.py FRAMEWORK FOLDER [--optimizer sgd] [--lr 1e-3] [--steps 100]
                                  [--warmup 0] [--clip 0] [--dtype float32] [--perturb SEED]

FRAMEWORK is torch, oneflow, paddle or mindspore, and PYTHON an interpreter that has it (`refkernels
env list` names them). Every optimizer is the framework's own. Step s takes batch s mod 10. FOLDER
is what `refkernels align` reads; prints the losses as JSON. Needs capture.py (refkernels/) on its
path: it is found beside this file's folder, or beside the file.
"""

import argparse
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


def data():
    folder = HERE / "data"
    with np.load(folder / "bert_weights.npz", allow_pickle=False) as file:
        weights = {name: file[name] for name in file.files}
    with np.load(folder / "bert_batches.npz", allow_pickle=False) as file:
        batches = {name: file[name].astype(np.int64) for name in file.files}
    return weights, batches


def model_of(nn, base, linear, norm, call, softmax, turn, constant, gelu):
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
            self.each = nn.CrossEntropyLoss(reduction="none")
            self.mean = nn.CrossEntropyLoss()

        def forward(self, ids, types, order, keep, places, labels, weights, firsts, following):
            x = self.ln(self.word(ids) + self.sort(types) + self.pos(order))
            x = self.l1(self.l0(x, keep), keep).reshape((-1, WIDTH))
            hidden = self.mlm_ln(self.mlm_act(self.mlm(x[places])))
            table = self.word.weight if hasattr(self.word, "weight") else self.word.embedding_table
            logits = hidden @ turn(table, (1, 0)) + self.mlm_bias
            loss = (self.each(logits, labels).reshape((-1,)) * weights).sum() / (
                weights.sum() + 1e-5
            )
            sentence = self.nsp(self.tanh(self.pool(x[firsts])))
            return loss + self.mean(sentence, following)

    if call != "forward":
        for one in (Attention, Block, Bert):
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


def rate_of(asked, step):
    """Linear warm-up, then the rate."""
    return asked.lr * min(1.0, (step + 1) / asked.warmup) if asked.warmup else asked.lr


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
        turn, parameter, nn.GELU,
    )  # fmt: skip
    if not turned_linear:
        model = model.to(getattr(api, asked.dtype))
    weights, _ = data()
    for name, p in model.named_parameters():
        array = weights[key_of(name)].astype(asked.dtype)
        linear = name.endswith(".weight") and array.ndim == 2 and "emb" not in key_of(name)
        array = array.T.copy() if turned_linear and linear else array
        if turned_linear:
            p.set_value(array)
        else:
            with api.no_grad():
                p.copy_(api.tensor(array))
    return model


def groups_of(asked, model):
    named = list(model.named_parameters())
    decayed = [p for name, p in named if not exempt(name)]
    others = [p for name, p in named if exempt(name)]
    return [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]


def with_torch(asked, api):
    model = like_torch(asked, api, False)
    if asked.optimizer == "adamw":
        optimizer = api.optim.AdamW([{**one, "lr": asked.lr} for one in groups_of(asked, model)])
    elif asked.optimizer == "adam":
        optimizer = api.optim.Adam(model.parameters(), lr=asked.lr)
    else:
        optimizer = api.optim.SGD(model.parameters(), lr=asked.lr, momentum=0.9)

    def step(*batch):
        optimizer.zero_grad()
        loss = model(*batch)
        loss.backward()
        if asked.clip:
            api.nn.utils.clip_grad_norm_(model.parameters(), asked.clip)
        optimizer.step()
        return loss

    def rate(value):
        for group in optimizer.param_groups:
            group["lr"] = value

    return model, optimizer, step, rate, api.tensor, lambda loss: float(loss.item())


def with_paddle(asked, api):
    model = like_torch(asked, api, True)
    clip = api.nn.ClipGradByGlobalNorm(asked.clip) if asked.clip else None
    how = {"parameters": model.parameters(), "grad_clip": clip}
    kept = {p.name for name, p in model.named_parameters() if exempt(name)}
    optimizer = {
        "sgd": lambda: api.optimizer.Momentum(asked.lr, 0.9, **how),
        "adam": lambda: api.optimizer.Adam(asked.lr, **how),
        "adamw": lambda: api.optimizer.AdamW(
            asked.lr, weight_decay=0.01, apply_decay_param_fun=lambda name: name not in kept, **how
        ),
    }[asked.optimizer]()

    def step(*batch):
        loss = model(*batch)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return model, optimizer, step, optimizer.set_lr, api.to_tensor, lambda loss: float(loss.numpy())


def with_mindspore(asked, api):
    nn, ops, Tensor = api.nn, api.ops, api.Tensor
    api.set_device("CPU")
    api.set_context(mode=api.PYNATIVE_MODE)
    kind = getattr(api, asked.dtype)
    model = model_of(
        nn, nn.Cell, nn.Dense, lambda: nn.LayerNorm((WIDTH,), epsilon=EPS), "construct",
        lambda: nn.Softmax(axis=-1), lambda y, axes: y.transpose(axes),
        lambda array: api.Parameter(Tensor(array.astype(asked.dtype)), name="mlm_bias"),
        lambda: nn.GELU(approximate=False),
    )  # fmt: skip
    model.to_float(kind) if asked.dtype == "float64" else None
    weights, _ = data()
    for name, p in model.parameters_and_names():
        p.set_data(Tensor(weights[key_of(name)].astype(asked.dtype)))
    free = list(model.trainable_params())
    named = [(name, p) for name, p in model.parameters_and_names()]
    groups = [
        {"params": [p for name, p in named if not exempt(name)], "weight_decay": 0.01},
        {"params": [p for name, p in named if exempt(name)], "weight_decay": 0.0},
    ]
    optimizer = {
        "sgd": lambda: nn.Momentum(free, asked.lr, 0.9),
        "adam": lambda: nn.Adam(free, asked.lr),
        "adamw": lambda: nn.AdamWeightDecay(groups, asked.lr),
    }[asked.optimizer]()
    gradients = api.value_and_grad(lambda *batch: model(*batch), None, optimizer.parameters)

    def step(*batch):
        loss, grads = gradients(*batch)
        optimizer(ops.clip_by_global_norm(grads, asked.clip) if asked.clip else grads)
        return loss

    def rate(value):
        if asked.warmup:
            optimizer.learning_rate.set_data(Tensor(np.float32(value)))

    return model, optimizer, step, rate, Tensor, lambda loss: float(loss.asnumpy())


TRAININGS = {
    "torch": with_torch, "oneflow": with_torch, "paddle": with_paddle, "mindspore": with_mindspore,
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("framework", choices=sorted(TRAININGS))
    parser.add_argument("folder")
    parser.add_argument("--optimizer", choices=("sgd", "adam", "adamw"), default="sgd")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--captured", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--perturb", type=int)
    asked = parser.parse_args()
    api = __import__(asked.framework)
    model, optimizer, step, rate, tensor, number = TRAININGS[asked.framework](asked, api)
    _, batches = data()
    rows, losses = batches["ids"].shape[1], []
    order = np.tile(np.arange(LENGTH), (rows, 1))
    how = {"steps": asked.captured, "perturb": asked.perturb}
    with Capture(asked.folder, model, optimizer, **how) as capture:
        for number_of in range(asked.steps):
            now = {name: array[number_of % 10] for name, array in batches.items()}
            keep = np.where(now["mask"], 0.0, -10000.0)[:, None, None, :].astype(asked.dtype)
            places = (np.arange(rows)[:, None] * LENGTH + now["positions"]).reshape(-1)
            arrays = (
                now["ids"], now["types"], order, keep, places, now["labels"].reshape(-1),
                now["weights"].reshape(-1).astype(asked.dtype), np.arange(rows) * LENGTH,
                now["next"],
            )  # fmt: skip
            if asked.framework == "mindspore":
                arrays = [one.astype(np.int32) if one.dtype.kind == "i" else one for one in arrays]
            batch = [tensor(one) for one in arrays]
            rate(rate_of(asked, number_of))
            loss = step(*batch)
            capture.step(loss=loss, batch={"ids": batch[0], "labels": batch[5]})
            losses.append(number(loss))
    print(json.dumps(losses))


if __name__ == "__main__":
    main()
