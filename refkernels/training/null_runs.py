"""Null runs of a formula: K trainings, each with newly drawn random roundings."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.arguments import as_function, as_list, as_mapping, as_path
from refkernels.arithmetic.scalars import as_count, as_real
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
    """Make the runs to which `refkernels align A B --null FOLDER` compares two loss curves.

    folder      each run is a folder in it (null_00, ...); complete runs of these settings are kept
    loss        the definition: loss(xp, weights, batch), a formula such as that of examples/bert.py
    weights     the initial weights by name; they are rounded to float32
    batches     step s takes batch s mod len(batches)
    optimizer   an op of refkernels.optimizer_ref, such as "sgd" or "adamw"; `params` are its
                hyper-parameters, `undecayed` the weights without weight decay
    lr          the learning rate, or a function of the step
    max_norm    gradients are clipped by their global norm, in the `way` of
                refkernels.clip_ref.clip_by_global_norm: "eps" (PyTorch, OneFlow) or "max"

    The arithmetic is `refkernels.contexts.Shuffled`: float32, sums in random orders, every other
    operation rounded at random. The p-value holds if the roundings of A and B are no larger, which
    align checks on their captures (docs/align.md). Raises ValueError for an unknown optimizer or
    weight, and for a folder with runs of other settings (a different formula is not noticed);
    TypeError for an argument that is not a function, number or mapping.
    """
    place, formula = as_path(folder, "folder"), as_function(loss, "loss")
    all_batches, run_count = as_list(batches, "batches"), as_count(runs, "runs")
    step_count, first_seed = as_count(steps, "steps"), as_count(seed, "seed", 0)
    if not all_batches:
        raise ValueError("batches is empty: a step needs one.")
    rate: Rate = lr if callable(lr) else functools.partial(_constant, as_real(lr, "lr"))
    folders = []
    for number in range(run_count):
        run_folder = place / f"null_{number:02d}"
        folders.append(run_folder)
        training = Training(
            Shuffled(first_seed * 100_003 + number), formula, as_mapping(weights, "weights"),
            optimizer, params, frozenset(undecayed), max_norm, way,
        )  # fmt: skip
        run = writing.described(
            getattr(formula, "__name__", "formula"), training.weights, optimizer,
            {"lr": rate(0), **params}, list(undecayed),
            notes={"arithmetic": training.xp.name, "max_norm": max_norm, "way": way},
        )  # fmt: skip
        if _is_complete(run_folder, run, all_batches, rate, step_count):
            continue
        lines = []
        for step in range(step_count):
            batch = all_batches[step % len(all_batches)]
            loss_value = training.step(batch, rate(step))
            lines.append(writing.line(step, loss_value, [rate(step)], batch))
            if not np.isfinite(loss_value):
                break
        writing.write_run(run_folder, run, lines)
        progress(f"{run_folder.name}: {len(lines)} steps, last loss {lines[-1]['loss_hex']}")
    return folders


def _constant(lr: float, step: int) -> float:
    return lr


def _is_complete(
    folder: Path, run: Mapping[str, Any], batches: Sequence[Any], rate: Rate, steps: int
) -> bool:
    """Whether the folder holds this run with at least `steps` steps. Raises ValueError if it holds
    a run of another training."""
    try:
        written = json.loads((folder / "rank_0" / "run.json").read_text("utf-8"))
        text = (folder / "rank_0" / "steps.jsonl").read_text("utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
    except (OSError, ValueError):
        return False
    expected = {**json.loads(json.dumps(run)), "complete": True}
    same = written == expected and all(
        line["lr"] == [rate(step)] and line["hash"]["batch"] == writing.hashed(batch)
        for step, line in enumerate(lines)
        for batch in [batches[step % len(batches)]]
    )
    if not same:
        raise ValueError(f"{folder} is a run of another training: choose another folder.")
    return len(lines) >= steps
