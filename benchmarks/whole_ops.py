"""Ops of a model and of its training, beside torch's own in float64: attention, a loss over rows,
and a step of an optimizer."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import peers
from sections import certainty
from stopwatch import Row, race

from refkernels import registry
from refkernels.arithmetic.question import Certify

Question = tuple[dict[str, np.ndarray], dict[str, Any], Certify]
ULP: Certify = ("ulp", "float32", 0.01)
BARS = {
    ("attention", "8 x 256 x 64"): 6.0,
    ("cross_entropy", "4096 x 1024"): 3.0,
    ("adamw", "10000000"): 4.0,
}


def attention(shape: tuple[int, ...]) -> Question:
    """Forward to 0.01 ulp; q, k and v of one shape (heads, length, width)."""
    rng = np.random.default_rng(shape[0])
    return {name: rng.standard_normal(shape).astype(np.float32) for name in "qkv"}, {}, ULP


def cross_entropy(shape: tuple[int, ...]) -> Question:
    """The mean loss, to 0.01 ulp."""
    rng = np.random.default_rng(shape[0])
    x = (3.0 * rng.standard_normal(shape)).astype(np.float32)
    return {"x": x, "target": rng.integers(0, shape[1], shape[0])}, {}, ULP


def adamw(shape: tuple[int, ...]) -> Question:
    """A step with its certificate: enclosures as tight as float64 gives."""
    (n,) = shape
    rng = np.random.default_rng(n)
    states = {x: rng.standard_normal(n).astype(np.float32) for x in ("param", "grad", "m")}
    return {**states, "v": rng.random(n, np.float32)}, {"step": 7}, "enclosure"


OPS = {"attention": attention, "cross_entropy": cross_entropy, "adamw": adamw}


def forward(name: str, shape: tuple[int, ...], torch: peers.Torch, seconds: float) -> Iterator[Row]:
    """The op beside torch's."""
    inputs, params, certify = OPS[name](shape)
    size = " x ".join(map(str, shape))
    op, base = registry.get(name), f"torch float64 {name}"
    n = max(array.size for array in inputs.values())

    def run() -> Any:
        answer = op.evaluate("forward", inputs, params, certify)
        return tuple(output for output in answer.values() if output is not None)

    bar = BARS.get((name, size))
    entry = Row("whole ops", name, size, "refkernels", n, base=base, bar=bar)
    theirs = Row("whole ops", name, size, base, n, base=base)
    peer = torch.work(name, "forward", inputs, params)
    race({name: (entry, lambda: run() and None), base: (theirs, peer)}, seconds)
    if entry.missing is None:
        entry.note = certainty(run, "float32")
    yield from (entry, theirs)
