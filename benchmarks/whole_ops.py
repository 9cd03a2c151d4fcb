"""Ops of a model and of its training, beside torch's own in float64: attention, a loss over rows,
and a step of an optimizer."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import peers
from sections import certainty
from stopwatch import Row, Work, race

from refkernels import registry
from refkernels.arithmetic.question import Certify

Inputs = dict[str, np.ndarray]
ULP: Certify = ("ulp", "float32", 0.01)
BARS = {
    ("attention", "8 x 256 x 64"): 6.0,
    ("cross_entropy", "4096 x 1024"): 3.0,
    ("adamw", "10 000 000"): 4.0,
}


def attention(shape: tuple[int, ...], torch: peers.Torch, seconds: float) -> Iterator[Row]:
    """Forward to 0.01 ulp; q, k and v of one shape (heads, length, width)."""
    rng = np.random.default_rng(shape[0])
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name in "qkv"}
    yield from _forward("attention", " x ".join(map(str, shape)), inputs, {}, ULP, torch, seconds)


def cross_entropy(shape: tuple[int, ...], torch: peers.Torch, seconds: float) -> Iterator[Row]:
    """The mean loss, to 0.01 ulp."""
    rng = np.random.default_rng(shape[0])
    x = (3.0 * rng.standard_normal(shape)).astype(np.float32)
    inputs = {"x": x, "target": rng.integers(0, shape[1], shape[0])}
    size = " x ".join(map(str, shape))
    yield from _forward("cross_entropy", size, inputs, {}, ULP, torch, seconds)


def adamw(shape: tuple[int, ...], torch: peers.Torch, seconds: float) -> Iterator[Row]:
    """A step with its certificate: enclosures as tight as float64 gives."""
    (n,) = shape
    rng = np.random.default_rng(n)
    states = {x: rng.standard_normal(n).astype(np.float32) for x in ("param", "grad", "m")}
    inputs = {**states, "v": rng.random(n, np.float32)}
    size = f"{n:,}".replace(",", " ")
    yield from _forward("adamw", size, inputs, {"step": 7}, "enclosure", torch, seconds)


OPS = {"attention": attention, "cross_entropy": cross_entropy, "adamw": adamw}


def _forward(
    name: str, size: str, inputs: Inputs, params: dict[str, Any], certify: Certify,
    torch: peers.Torch, seconds: float,
) -> Iterator[Row]:  # fmt: skip
    op, base = registry.get(name), f"torch float64 {name}"
    n = max(array.size for array in inputs.values())

    def run() -> Any:
        answer = op.evaluate("forward", inputs, params, certify)
        return tuple(output for output in answer.values() if output is not None)

    def work() -> None:
        run()

    bar = BARS.get((name, size))
    entry = Row("whole ops", name, size, "refkernels", n, base=base, bar=bar)
    theirs = Row("whole ops", name, size, base, n, base=base)
    contestants: dict[str, tuple[Row, Work]] = {
        name: (entry, work),
        base: (theirs, torch.work(name, "forward", inputs, params)),
    }
    race(contestants, seconds)
    if entry.missing is None:
        entry.note = certainty(run, "float32")
    yield from (row for row, _ in contestants.values())
