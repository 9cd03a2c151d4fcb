"""Null runs of a formula: its training, K times, in roundings that are drawn anew each time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.arguments import as_path
from refkernels.arithmetic.scalars import as_count
from refkernels.contexts.shuffled import Shuffled
from refkernels.training import writing
from refkernels.training.steps import Arrays, Loss, Training

Rate = Callable[[int], float]


def null_runs(
    folder: str | os.PathLike[str],
    loss: Loss,
    weights: Arrays,
    batches: Sequence[Mapping[str, Any]],
    optimizer: str = "adamw",
    *,
    lr: float | Rate,
    steps: int,
    runs: int = 19,
    seed: int = 0,
    undecayed: Sequence[str] = (),
    max_norm: float | None = None,
    way: str = "eps",
    progress: Callable[[str], None] = lambda line: None,
    **params: Any,
) -> list[Path]:
    """Runs that `refkernels align A B --null FOLDER` holds two loss curves against.

    folder      each run is a folder in it, null_00 and so on; whole runs are not made again
    loss        the definition: loss(xp, weights, batch), a formula as examples/bert.py's
    weights     by name, at the start; they are rounded to float32
    batches     step s takes batch s mod len(batches)
    optimizer   an op of refkernels.optimizer_ref, such as "sgd" or "adamw"; `params` are its
                hyper-parameters, `undecayed` the weights without weight decay
    lr          the learning rate, or a function of the step
    max_norm    gradients are clipped by their global norm, in the `way` of
                refkernels.clip_ref.clip_by_global_norm: "eps" (PyTorch, OneFlow) or "max"

    The arithmetic is `refkernels.contexts.Shuffled`: float32, sums in random orders, every other
    operation rounded at random. Its p-value holds where the roundings of A and B are no larger than
    that, which align checks on what they captured (docs/align.md). Raises ValueError for an
    optimizer or weights that are not there.
    """
    place = as_path(folder, "folder")
    many, length = as_count(runs, "runs"), as_count(steps, "steps")
    rate: Rate = lr if callable(lr) else lambda step: float(lr)
    made = []
    for number in range(many):
        own = place / f"null_{number:02d}"
        made.append(own)
        if _whole(own, length):
            continue
        training = Training(
            Shuffled(seed * 100_003 + number), loss, dict(weights), optimizer, params,
            frozenset(undecayed), max_norm, way,
        )  # fmt: skip
        run = writing.described(
            getattr(loss, "__name__", "formula"), training.weights, optimizer,
            {"lr": rate(0), **params}, list(undecayed),
            notes={"arithmetic": training.xp.name, "max_norm": max_norm},
        )  # fmt: skip
        lines = []
        for step in range(length):
            batch = batches[step % len(batches)]
            value = training.step(batch, rate(step))
            lines.append(writing.line(step, value, [rate(step)], batch))
            if not np.isfinite(value):
                break
        writing.write_run(own, run, lines)
        progress(f"{own.name}: {len(lines)} steps, last loss {lines[-1]['loss_hex']}")
    return made


def _whole(folder: Path, steps: int) -> bool:
    """Whether that run is there, and as long."""
    try:
        told = json.loads((folder / "rank_0" / "run.json").read_text("utf-8"))
        lines = (folder / "rank_0" / "steps.jsonl").read_text("utf-8").count("\n")
    except (OSError, ValueError):
        return False
    return told.get("complete") is True and lines >= steps
