"""Null runs of a formula: K trainings, each with newly drawn random roundings."""

from __future__ import annotations

import contextlib
import hashlib
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

_AGAIN = 3  # steps of a kept run that are taken again: the third loss has seen two updates


def null_runs(
    folder: str | os.PathLike[str],
    loss: Loss,
    weights: Arrays,
    batches: Sequence[Mapping[str, Any]],
    optimizer: str = "adamw",
    *,
    lr: float | Callable[[int], float],
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

    folder      each run is a folder in it (null_00, ...); complete runs of this training are kept,
                once their first steps, taken again, have the same bits
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
    weight, and for a run of another training; TypeError for an argument that is not a function,
    number or mapping.
    """
    place, formula = as_path(folder, "folder"), as_function(loss, "loss")
    all_batches, run_count = as_list(batches, "batches"), as_count(runs, "runs")
    step_count, first_seed = as_count(steps, "steps"), as_count(seed, "seed", 0)
    if not all_batches:
        raise ValueError("batches is empty: a step needs one.")
    rates = [float(lr(k)) if callable(lr) else as_real(lr, "lr") for k in range(step_count)]
    start, name = as_mapping(weights, "weights"), getattr(formula, "__name__", "formula")
    settings = repr((optimizer, params, sorted(undecayed), max_norm, way))
    digest = hashlib.sha256()
    for arrays in (start, *all_batches):
        for key, array in sorted(arrays.items()):
            digest.update(key.encode() + np.asarray(array).tobytes())
    folders = [place / f"null_{number:02d}" for number in range(run_count)]
    question = formula, start, optimizer, params, frozenset(undecayed), max_norm, way
    for number, run_folder in enumerate(folders):
        training = Training(Shuffled(first_seed * 100_003 + number), *question)
        notes = {"arithmetic": training.xp.name, "settings": settings, "data": digest.hexdigest()}
        kept = _kept(run_folder / "rank_0", notes, rates)
        whole = len(kept) >= step_count or (kept != [] and kept[-1]["loss"] is None)
        lines: list[dict[str, Any]] = []
        for step, rate in enumerate(rates[:_AGAIN] if whole else rates):
            loss_value = training.step(all_batches[step % len(all_batches)], rate)
            finite = loss_value if np.isfinite(loss_value) else None
            lines.append({  # docs/capture.md
                "step": step, "loss": finite, "loss_hex": loss_value.hex(),
                "loss_dtype": "float32", "lr": [rate], "updates": 1, "captured": False,
            })  # fmt: skip
            if kept[step : step + 1] not in ([], lines[-1:]):
                raise ValueError(f"{run_folder} has another loss at {step}: choose another folder.")
            if finite is None:
                break
        if not whole:
            _write(run_folder / "rank_0", name, lines, notes)
            progress(f"{run_folder.name}: {len(lines)} steps, last loss {lines[-1]['loss_hex']}")
    return folders


def _kept(folder: Path, notes: Mapping[str, Any], rates: list[float]) -> list[dict[str, Any]]:
    """The lines of the run in a folder; none without run.json, which is written last."""
    if not (folder / "run.json").exists():
        return []
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # of a damaged file
        lines = [json.loads(line) for line in (folder / "steps.jsonl").read_bytes().splitlines()]
        same = json.loads((folder / "run.json").read_bytes())["notes"] == notes
        if same and all(line["lr"] == [rate] for line, rate in zip(lines, rates, strict=False)):
            return lines
    raise ValueError(f"{folder.parent} is damaged or of another training: choose another folder.")


def _write(folder: Path, model: str, lines: Sequence[Any], notes: Mapping[str, Any]) -> None:
    """Write a whole run of one rank, run.json last: it says that the run is complete."""
    run = {
        "format": "refkernels-capture", "format_version": 1, "complete": True, "rank": 0,
        "world_size": 1, "framework": "refkernels", "model": model, "parameters": [],
        "versions": {"refkernels": refkernels.__version__, "numpy": np.__version__},
        "notes": dict(notes),
    }  # fmt: skip
    write_whole(folder / "steps.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    write_whole(folder / "run.json", json.dumps(run, indent=1) + "\n")
