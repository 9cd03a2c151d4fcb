"""Faults of a training: are they named from its first step, and when does its loss curve show them?

    python benchmarks/alignment.py [--steps 200] [--nulls 10] [--out FILE] [--costs ROUNDS]

Other definitions are planted one at a time in a small transformer, which torch trains in float32
(tests/alignment/planted_training.py). Two questions about each. What does `refkernels align` say
from a capture of step 0, or of steps 0 to 2 where step 0 shows nothing? And from which step on does
the loss curve alone show it? It shows where the curve differs, for 5 steps running, by more than
twice the largest difference so far of runs with one weight moved by an ulp. Prints a table; FILE
keeps it as JSON. With --costs: what a captured step of a 7 M Llama costs, in its own size and time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.alignment import align
from refkernels.frameworks import environments
from refkernels.records.files import write_whole
from refkernels.reporting.alignment import page

ROOT = Path(__file__).parent.parent
PLANTED = {  # what is planted, and the run that it is compared with
    **dict.fromkeys(
        (
            "layernorm_eps", "layernorm_eps_hidden", "tanh_gelu_declared", "tanh_gelu",
            "attention_scale", "label_smoothing", "loss_sum", "tied_gradient_dropped",
            "gradient_times_8", "adam_eps", "decay_on_excluded", "coupled_decay", "clip_left_out",
            "clip_each_group", "clip_each_parameter", "clip_at_one", "late_schedule", "stale_batch",
        ),
        "right",
    ),
    **dict.fromkeys(("halves_sum", "loss_scale_left_in"), "clip_left_out"),
    **dict.fromkeys(("masked_means", "ranks_masked_means"), "masked"),
    **dict.fromkeys(("ranks_sum", "ranks_own", "ranks_same_shard"), "ranks_mean"),
    "clip_before_unscale": "scaled",
    **dict.fromkeys(("no_bias_correction", "adam_eps_hat", "adam_eps_inside"), "right_adam"),
    **dict.fromkeys(("momentum_nesterov", "momentum_dampening"), "sgd"),
}  # fmt: skip
RUNNING = 5  # steps for which a curve stays out of the spread
BEYOND = 2.0  # of the null runs' largest difference so far


def ran(folder: Path, script: str, *arguments: str) -> dict[str, Any]:
    """What a script of tests/alignment prints, run by torch in the folder."""
    for source in ("refkernels/capture.py", f"tests/alignment/{script}"):
        shutil.copy(ROOT / source, folder)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [environments.find("torch").python, "-E", script, *arguments]
    text = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout
    return dict(json.loads(text.splitlines()[-1]))


def leaves(losses: np.ndarray, base: np.ndarray, nulls: list[np.ndarray]) -> int | None:
    """The first step from which the curve stays out of the spread; None where it never does."""
    spread = np.maximum.accumulate(np.max([np.abs(null - base) for null in nulls], axis=0))
    floor = np.spacing(np.abs(base).astype(np.float32)).astype(np.float64)
    out = ~(np.abs(losses - base) <= BEYOND * np.maximum(spread, floor))
    for step in range(len(out) - RUNNING + 1):
        if out[step : step + RUNNING].all():
            return step
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--nulls", type=int, default=10)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--costs", metavar="ROUNDS")
    arguments = parser.parse_args()
    bases = sorted(set(PLANTED.values()))
    null = {base: [f"{base}@{seed}" for seed in range(arguments.nulls)] for base in bases}
    names = [*dict.fromkeys((*bases, *PLANTED)), *(n for runs in null.values() for n in runs)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if arguments.costs:
            print(ran(folder, "costly_training.py", arguments.costs))
            return
        losses = ran(folder, "planted_training.py", str(arguments.steps), *names)
        losses = {name: np.array(values) for name, values in losses.items()}
        rows = [_row(folder, name, losses, null) for name in PLANTED]
    print(f"{'planted':24} {'align: step':>11} {'topic':10} {'curve leaves':>12}  seconds")
    for row in rows:
        left = "never" if row["curve"] is None else row["curve"]
        step = "–" if row["step"] is None else row["step"]
        print(
            f"{row['planted']:24} {step!s:>11} {row['topic']:10} {left!s:>12}  {row['seconds']:.1f}"
        )
    if arguments.out:
        record = {"steps": arguments.steps, "nulls": arguments.nulls, "rows": rows}
        write_whole(arguments.out, json.dumps(record, indent=1) + "\n")


def _row(
    folder: Path, name: str, losses: dict[str, np.ndarray], null: dict[str, list[str]]
) -> dict[str, Any]:
    base, began = PLANTED[name], time.perf_counter()
    for steps in ([0], [0, 1, 2]):
        alignment = align(folder / base, folder / name, steps=steps)
        if alignment.verdict.word == "different":
            break
    first = alignment.verdict.first
    nulls = [losses[run] for run in null[base]]
    return {
        "planted": name,
        "verdict": alignment.verdict.word,
        "step": None if first is None else first.step,
        "topic": "" if first is None else first.topic,
        "says": page.headline(alignment.to_dict()),
        "curve": leaves(losses[name], losses[base], nulls),
        "seconds": round(time.perf_counter() - began, 2),
    }


if __name__ == "__main__":
    main()
