"""Rounding-only runs of examples/train_bert.py's trainings, by the formula of examples/bert.py.

    python examples/null_runs.py FOLDER [--optimizer sgd] [--lr 1e-3] [--steps 100] [--warmup 0]
                                 [--total 0] [--clip 0] [--runs 19]
    refkernels align run_torch run_paddle --null FOLDER

No framework is needed: the formula is trained in refkernels.contexts.Shuffled. Options mean what
they mean in train_bert.py. Finished runs are not repeated.
"""

from __future__ import annotations

import argparse
from typing import Any

import bert

from refkernels.training import null_runs

FROM = 0.1  # of the learning rate, in the first step of a warm-up, as in train_bert.py
EXEMPT = (".ln", ".b", "mlm.bias")  # from weight decay: norms and biases
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("sgd", {"momentum": 0.9}),
    "adam": ("adam", {}),
    "adamw": ("adamw", {"weight_decay": 0.01}),
}


def rate(step: int, lr: float, warmup: int, total: int) -> float:
    """A linear warm-up from FROM lr, then a linear decay to 0 at `total`."""
    if step < warmup:
        return lr * (FROM + (1.0 - FROM) * step / warmup)
    return lr * (1.0 - (step - warmup) / (total - warmup)) if warmup else lr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="sgd")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--total", type=int, default=0)
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--runs", type=int, default=19)
    arguments = parser.parse_args()

    total = arguments.total or arguments.steps
    if arguments.warmup and total <= arguments.warmup:
        parser.error("--total must be more than --warmup")
    weights, _ = bert.load()
    batches = [bert.load(step)[1] for step in range(10)]
    optimizer, params = OPTIMIZERS[arguments.optimizer]
    null_runs(
        arguments.folder, bert.loss, weights, batches, optimizer,
        lr=lambda step: rate(step, arguments.lr, arguments.warmup, total), steps=arguments.steps,
        runs=arguments.runs, undecayed=[name for name in weights if any(e in name for e in EXEMPT)],
        max_norm=arguments.clip or None, progress=print, **params,
    )  # fmt: skip


if __name__ == "__main__":
    main()
