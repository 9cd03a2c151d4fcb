"""A BERT as one formula, read by the project's contexts: its first loss, with a certificate.

    python examples/bert.py [--rows 8] [--precision 128]

The model is small (2 layers, hidden size 64, 2 heads, 200 words) and has all that the real one has:
word, position and type embeddings, post-LN blocks with softmax attention and an erf GELU, a masked
language model tied to the word embedding, next-sentence prediction, and BERT's loss,

    sum(w ce) / (sum(w) + 1e-5) + mean(nsp)

Read in `Arb`, every operation is enclosed: the loss and its gradients come with proven digits. Read
in `RoundedArithmetic("float32")`, it is what a plain float32 kernel computes. `loss` is the
formula; weights are arrays by name (linear weights (out, in)), a batch is ids, types, mask,
positions, labels, weights, next. Source: Devlin et al. (2019), arXiv:1810.04805.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts import Arb, Gradient, RoundedArithmetic, objects
from refkernels.contexts.gradient import Taped

Array = npt.NDArray[Any]
DATA = Path(__file__).parent / "data"
HEADS, EPS, MASKED = 2, 1e-12, -10000


def linear(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    """x W^T + b over the last axis."""
    return xp.matmul(x, xp.transpose(weight, (1, 0))) + bias


def layer_norm(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    centred = x - xp.mean(x)
    variance = xp.mean(xp.square(centred))
    return centred * xp.rsqrt(variance + xp.number(EPS)) * weight + bias


def gelu(xp: Any, x: Any) -> Any:
    """x Phi(x), by erfc."""
    return x * xp.erfc(-x / xp.sqrt(xp.number(2))) / 2


def cross_entropy(xp: Any, logits: Any, labels: Array) -> Any:
    """log(sum e^(z - m)) + m - z_label, row by row."""
    top = xp.pivot(logits)
    total = xp.log(xp.sum(xp.exp(logits - top))) + top
    return total - xp.take_along_axis(logits, labels[..., None])


def attention(xp: Any, x: Any, w: Mapping[str, Any], name: str, keep: Any) -> Any:
    """Over heads: softmax(q k^T / sqrt(d) + mask) v."""
    rows, length, width = x.shape
    size = width // HEADS

    def split(part: str) -> Any:
        y = linear(xp, x, w[f"{name}.{part}.w"], w[f"{name}.{part}.b"])
        return xp.transpose(xp.reshape(y, (rows, length, HEADS, size)), (0, 2, 1, 3))

    q, k, v = map(split, "qkv")
    scores = xp.matmul(q, xp.transpose(k, (0, 1, 3, 2))) / xp.sqrt(xp.number(size)) + keep
    e = xp.exp(scores - xp.pivot(scores))
    mixed = xp.matmul(e / xp.sum(e), v)
    mixed = xp.reshape(xp.transpose(mixed, (0, 2, 1, 3)), (rows, length, width))
    return linear(xp, mixed, w[f"{name}.o.w"], w[f"{name}.o.b"])


def loss(xp: Any, w: Mapping[str, Any], batch: Mapping[str, Array]) -> Any:
    """BERT's pre-training loss."""
    rows, length = batch["ids"].shape
    width, layers = w["emb.ln.w"].shape[0], sum(name.endswith(".q.w") for name in w)

    def norm(x: Any, name: str) -> Any:
        return layer_norm(xp, x, w[f"{name}.w"], w[f"{name}.b"])

    x = xp.take(w["emb.word"], batch["ids"], 0) + xp.take(w["emb.type"], batch["types"], 0)
    x = norm(x + xp.take(w["emb.pos"], np.arange(length), 0), "emb.ln")
    keep = xp.array(np.where(batch["mask"], 0.0, MASKED)[:, None, None, :])
    for layer in range(layers):
        name = f"l{layer}"
        x = norm(x + attention(xp, x, w, name, keep), f"{name}.ln1")
        inner = gelu(xp, linear(xp, x, w[f"{name}.f1.w"], w[f"{name}.f1.b"]))
        x = norm(x + linear(xp, inner, w[f"{name}.f2.w"], w[f"{name}.f2.b"]), f"{name}.ln2")
    flat = xp.reshape(x, (rows * length, width))
    places = (np.arange(rows)[:, None] * length + batch["positions"]).reshape(-1)
    hidden = gelu(xp, linear(xp, xp.take(flat, places, 0), w["mlm.w"], w["mlm.b"]))
    logits = linear(xp, norm(hidden, "mlm.ln"), w["emb.word"], w["mlm.bias"])
    counted = batch["weights"].reshape(-1)
    losses = cross_entropy(xp, logits, batch["labels"].reshape(-1))
    masked = xp.sum(xp.array(counted.astype(float)) * xp.reshape(losses, (places.size,)))
    masked = masked / (xp.number(int(counted.sum())) + xp.number(1e-5))
    first = xp.take(flat, np.arange(rows) * length, 0)
    pooled = xp.tanh(linear(xp, first, w["pool.w"], w["pool.b"]))
    sentence = cross_entropy(xp, linear(xp, pooled, w["nsp.w"], w["nsp.b"]), batch["next"])
    return masked + xp.mean(xp.reshape(sentence, (rows,)))


def gradients(xp: Any, w: Mapping[str, Any], batch: Mapping[str, Array]) -> tuple[Any, list[Any]]:
    """The loss, and its gradients in the order of the weights: the backward pass of the formula."""
    tape = Gradient(xp)
    nodes = {name: Taped(tape, value) for name, value in w.items()}
    value = loss(tape, nodes, batch)
    return value.value, tape.pull(value, xp.array(np.ones(1)), list(nodes.values()))


def load(step: int = 0, rows: int = 8) -> tuple[dict[str, Array], dict[str, Array]]:
    """The weights, and the batch of a step: float16 values, exact in every wider format."""
    with np.load(DATA / "bert_weights.npz", allow_pickle=False) as file:
        weights = {name: file[name].astype(np.float64) for name in file.files}
    with np.load(DATA / "bert_batches.npz", allow_pickle=False) as file:
        batch = {name: file[name][step % 10, :rows].astype(np.intp) for name in file.files}
    return weights, batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=8, help="rows of the batch (1 to 8)")
    parser.add_argument("--precision", type=int, default=128, help="bits of Arb")
    arguments = parser.parse_args()
    weights, batch = load(rows=arguments.rows)
    for name in ("float32", "float64"):
        xp = RoundedArithmetic(name)
        value = loss(xp, {key: xp.array(weight) for key, weight in weights.items()}, batch)
        print(f"{name:10} {float(xp.store(value).data.item()):.17g}")
    began = time.perf_counter()
    with Arb(arguments.precision) as arb:
        value, slopes = gradients(arb, {k: arb.array(v) for k, v in weights.items()}, batch)
        print(f"certified  {objects.data(value).item().str(30)}")
        print(f"{len(slopes)} gradients enclosed, in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
