"""What `refkernels.capture` costs: a step without the probe, with it, and a chosen step.

    TORCH_PYTHON benchmarks/capture_overhead.py [--steps 8] [--rounds 3] [--out FILE] [--keep RUN]
    python benchmarks/align_cost.py RUN

TORCH_PYTHON is an interpreter that has torch (`refkernels env list` names one). The model is a BERT
of four layers with hidden size 256, 11 million weights, batches of 8 x 128 tokens, AdamW, on one
thread. Seconds are processor time, which other programs hardly change; waiting for a disk is not
counted. Trainings take turns; medians are printed, and FILE keeps the least too. RUN keeps a run
with one captured step, for benchmarks/align_cost.py.
"""

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.append(str(Path(__file__).parent.parent / "refkernels"))

from capture import Capture

VOCABULARY, HIDDEN, BATCH, LENGTH = 30522, 256, 8, 128
MODES: dict[str, dict[str, Any] | None] = {
    "probe off": None,
    "hash_every=0": {"steps": [], "hash_every": 0},
    "not chosen": {"steps": []},
    "chosen": {"steps": range(10**3)},
}


class Block(nn.Module):
    """A post-LN transformer block with four heads."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.wide, self.narrow = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)
        self.gelu, self.norm1, self.norm2 = nn.GELU(), nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x[batch, length, hidden] of the same shape."""
        q, k, v = (
            f(x).view(BATCH, LENGTH, 4, -1).transpose(1, 2) for f in (self.q, self.k, self.v)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = self.norm1(x + self.o(mixed.reshape(BATCH, LENGTH, HIDDEN)))
        return self.norm2(x + self.narrow(self.gelu(self.wide(x))))


class Bert(nn.Module):
    """Embeddings, four blocks, and a decoder that shares the embedding's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.places = nn.Embedding(LENGTH, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.blocks = nn.Sequential(*(Block() for _ in range(4)))
        for weight in self.parameters():  # with PyTorch's own embeddings, gradients are subnormal
            if weight.ndim > 1:  # and a step takes ten times as long
                nn.init.normal_(weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits of every sixth position."""
        x = self.norm(self.tokens(ids) + self.places(torch.arange(LENGTH)))
        return nn.functional.linear(self.blocks(x)[:, ::6], self.tokens.weight)


def seconds_of(mode: dict[str, Any] | None, steps: int, keep: Path | None = None) -> list[float]:
    """Seconds of each step but the first two; the run is kept in a folder where one is given."""
    torch.manual_seed(0)
    model, generator = Bert(), torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    loss_of, seconds = nn.CrossEntropyLoss(), []
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        capture = None
        if mode is not None:
            mode = dict(mode, steps=[step for step in mode["steps"] if step < steps])
            destination = keep or folder
            capture = stack.enter_context(Capture(destination, model, optimizer, **mode))
        for _ in range(steps):
            ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=generator)
            start = time.process_time()
            optimizer.zero_grad()
            loss = loss_of(model(ids).flatten(0, 1), ids[:, ::6].flatten())
            loss.backward()
            optimizer.step()
            if capture is not None:
                capture.step(loss=loss, batch=ids)
            seconds.append(time.process_time() - start)
    return seconds[2:]


def main() -> None:
    """Print the median seconds of a step in each mode, and its ratio to the first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.keep:
        seconds_of({"steps": [0]}, 3, arguments.keep)
    seconds: dict[str, list[float]] = {name: [] for name in MODES}
    for number in range(arguments.rounds):
        for name, mode in MODES.items():
            seconds[name] += seconds_of(mode, arguments.steps)
            median = statistics.median(seconds[name])
            ratio = median / statistics.median(seconds["probe off"])
            print(f"round {number} {name:14} {median:8.3f} s {ratio:6.2f} x", flush=True)
    if arguments.out:
        off = seconds["probe off"]
        rows = {
            name: {
                "least_s": min(taken), "median_s": statistics.median(taken),
                "least_ratio": min(taken) / min(off),
                "median_ratio": statistics.median(taken) / statistics.median(off),
            }
            for name, taken in seconds.items()
        }  # fmt: skip
        record = {"steps": arguments.steps - 2, "rounds": arguments.rounds, "rows": rows}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
