"""Null runs of a formula: K trainings, each with newly drawn random roundings."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import refkernels
from refkernels.arguments import as_function, as_list, as_mapping, as_path
from refkernels.arithmetic.scalars import as_count, as_real
from refkernels.contexts.shuffled import Shuffled
from refkernels.records.files import write_whole
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

    folder      each run is a new folder in it (null_00, ...)
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
    weight, and for a folder with runs; TypeError for an argument that is not a function, number or
    mapping.
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
        if run_folder.exists():
            raise ValueError(f"{run_folder} is there already: choose another folder.")
        folders.append(run_folder)
        training = Training(
            Shuffled(first_seed * 100_003 + number), formula, as_mapping(weights, "weights"),
            optimizer, params, frozenset(undecayed), max_norm, way,
        )  # fmt: skip
        lines = []
        for step in range(step_count):
            loss_value = training.step(all_batches[step % len(all_batches)], rate(step))
            lines.append(_line(step, loss_value, rate(step)))
            if not np.isfinite(loss_value):
                break
        notes = {"arithmetic": training.xp.name, "optimizer": optimizer, "max_norm": max_norm}
        _write(run_folder / "rank_0", getattr(formula, "__name__", "formula"), lines, notes)
        progress(f"{run_folder.name}: {len(lines)} steps, last loss {lines[-1]['loss_hex']}")
    return folders


def _constant(lr: float, step: int) -> float:
    return lr


def _line(step: int, loss: float, lr: float) -> dict[str, Any]:
    """The line of a step in steps.jsonl (docs/capture.md)."""
    finite = loss if np.isfinite(loss) else None
    return {
        "step": step, "loss": finite, "loss_hex": float(loss).hex(), "loss_dtype": "float32",
        "lr": [lr], "updates": 1, "captured": False,
    }  # fmt: skip


def _write(
    folder: Path, model: str, lines: Sequence[Mapping[str, Any]], notes: Mapping[str, Any]
) -> None:
    """Write a whole run of one rank: its lines first, then run.json, which says that it is
    complete."""
    run = {
        "format": "refkernels-capture", "format_version": 1, "complete": True, "rank": 0,
        "world_size": 1, "framework": "refkernels", "model": model, "parameters": [],
        "versions": {"refkernels": refkernels.__version__, "numpy": np.__version__},
        "notes": dict(notes),
    }  # fmt: skip
    write_whole(folder / "steps.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    write_whole(folder / "run.json", json.dumps(run, indent=1) + "\n")
