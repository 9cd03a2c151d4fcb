"""The thread on BERT: its trainings as curves, and planted faults, by align and by curve.

    python benchmarks/bert_alignment.py curves  [--work FOLDER] [--only GLOB]
    python benchmarks/bert_alignment.py planted [--work FOLDER] [--only GLOB]

`curves` trains examples/train_bert.py in four frameworks, in the thread's settings (SETTINGS). It
keeps every loss in bert_curves.json, beside the other results. `planted` trains what
examples/planted_bert.py plants, for each optimizer, and asks two questions of each. What does
`refkernels align` say from the captures of steps 0 to 2? And from which step on does the loss curve
alone show it? It shows where the curve differs, for 5 steps running, by more than twice the largest
difference so far of runs that differ in rounding only. Kept in bert_planted.json. Runs lie in
FOLDER, and finished runs are not repeated: a stopped command resumes.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from alignment import leaves

from refkernels.alignment import align
from refkernels.frameworks import environments
from refkernels.records.files import write_whole
from refkernels.reporting.alignment import page

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "benchmarks" / "results" / "cpu-x86_64-linux"
TRAIN = ROOT / "examples" / "train_bert.py"
NULLS: dict[str, tuple[str, dict[str, str]]] = {  # roundings only: options, environment
    "ulp0": ("--perturb 0", {}),
    "ulp1": ("--perturb 1", {}),
    "order0": ("--permute 0", {}),
    "threads": ("--threads 2", {}),
    "isa": ("", {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "default"}),
}
SCHEDULED = "--steps 300 --warmup 30"
CLIP = "--steps 150 --lr 1e-1 --clip 1"
SETTINGS = {  # the thread's: options, frameworks ("graph": OneFlow's nn.Graph), null runs or not
    "sgd": ("--steps 1000", "torch paddle oneflow graph mindspore", True),
    "adam_schedule": (f"{SCHEDULED} --optimizer adam", "torch paddle oneflow graph", True),
    "sgd_schedule": (SCHEDULED, "torch paddle graph", True),
    "rows32": ("--steps 100 --rows 32", "torch", False),
    "clip": (CLIP, "torch paddle graph mindspore", False),
    "clip_each": (f"{CLIP} --clip-scope parameter", "torch paddle graph", False),
    "adamw": ("--steps 200 --optimizer adamw", "torch paddle graph mindspore", False),
    "lamb": ("--steps 100 --optimizer lamb --rows 16", "paddle graph", False),
    "sgd_5e-4": ("--steps 300 --lr 5e-4", "torch paddle oneflow graph mindspore", False),
}
OTHERS = {  # what the thread compares them with, in torch: the setting, and more options
    "adam_schedule_eps_hat": ("adam_schedule", "--planted eps_hat"),
    "adam_schedule_no_correction": ("adam_schedule", "--planted no_bias_correction"),
    "adamw_on_exempt": ("adamw", "--planted decay_on_exempt"),
    "adamw_order": ("adamw", "--permute 0"),
    "adamw_amp": ("adamw", "--amp"),
    "adamw_amp_ulp0": ("adamw", "--amp --perturb 0"),
    **{f"adamw_amp_order{seed}": ("adamw", f"--amp --permute {seed}") for seed in range(2)},
    "sgd_5e-4_ulp": ("sgd_5e-4", "--perturb 0"),
    "clip_without_eps": ("clip", "--planted clip_without_eps"),
    "accumulated": ("rows32", "--micro 8"),
    "accumulated_by_tokens": ("rows32", "--micro 8 --mean-over tokens"),
    "same_shard": ("rows32", "--micro 8 --same-shard"),
}
PLANTED = {  # by optimizer: its options, and what is planted
    "sgd": (
        "--lr 1e-3",
        (
            "loss_without_eps", "layernorm_eps", "tanh_gelu", "dampening", "nesterov",
            "gradient_times_8", "loss_over_padding", "nothing",
        ),
    ),
    "clipped": ("--lr 1e-1 --clip 1", ("clip_without_eps", "clip_each", "clip_left_out")),
    "adamw": ("--optimizer adamw", ("decay_on_exempt", "l2_for_decoupled", "nothing")),
    "adam": (
        "--optimizer adam",
        ("eps_hat", "eps_inside", "no_bias_correction", "gradient_times_8", "tanh_gelu"),
    ),
    "sgd_fast": ("--lr 1e-1", ("tanh_gelu", "layernorm_eps", "loss_without_eps")),
}  # fmt: skip


def trained(
    folder: Path, target: str, options: str, more_environment: dict[str, str] | None = None
) -> Path:
    """A run of examples/train_bert.py, unless the folder holds it already."""
    if finished(folder, options):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    graph = target == "graph"
    name = "oneflow" if graph else target
    command = [environments.find(name).python, str(TRAIN), name, str(folder), *options.split()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(more_environment or {})}
    environment.pop("PYTHONPATH", None)
    completed = subprocess.run(
        command + ["--graph"] * graph, env=environment, capture_output=True, text=True, check=False
    )
    if completed.returncode:
        raise SystemExit(f"{' '.join(command)}: {completed.stderr[-2000:]}")
    return folder


def finished(folder: Path, options: str) -> bool:
    """Whether the folder has the steps that `options` ask for."""
    steps = int(options.split("--steps ")[1].split()[0])
    return (folder / "rank_0" / "steps.jsonl").exists() and len(lines_of(folder)) >= steps


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of the finished steps, of a finished or a stopped run."""
    text = (folder / "rank_0" / "steps.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def losses_of(folder: Path) -> np.ndarray:
    return np.array([np.nan if line["loss"] is None else line["loss"] for line in lines_of(folder)])


# --- the thread's curves ----------------------------------------------------------------------


def curve_runs() -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Name, framework, options, environment."""
    for name, (options, targets, _) in SETTINGS.items():
        plain = f"{options} --captured"
        for target in targets.split():
            yield f"{name}/{target}", target, plain, {}
    for name, (setting, more_options) in OTHERS.items():
        yield f"{name}/torch", "torch", f"{SETTINGS[setting][0]} --captured {more_options}", {}
    for name, (options, _, nulls) in SETTINGS.items():
        for null, (more_options, environment) in NULLS.items() if nulls else ():
            yield (
                f"{name}/torch_{null}",
                "torch",
                f"{options} --captured {more_options}",
                environment,
            )


def curves(work: Path, only: str) -> None:
    out = KEPT / "bert_curves.json"
    runs = json.loads(out.read_text())["runs"] if out.exists() else {}
    chosen = [run for run in curve_runs() if fnmatch.fnmatch(run[0], only)]
    for number, (name, target, options, environment) in enumerate(chosen, 1):
        start, folder = time.perf_counter(), work / name.replace("/", "@")
        trained(folder, target, options, environment)
        lines = lines_of(folder)[: int(options.split()[1])]
        run = json.loads((folder / "rank_0" / "run.json").read_text())
        runs[name] = {
            "options": options, "environment": environment, "versions": run["versions"],
            "losses": [_short(line["loss"]) for line in lines],
            "lr": [_short(line["lr"][0]) for line in lines[:40] if line["lr"]],
            **{
                part: [_short(line["values"][part]) for line in lines]
                for part in lines[0]["values"]
                if part.startswith("loss_")
            },
        }  # fmt: skip
        print(f"{number}/{len(chosen)} {name}: {time.perf_counter() - start:.0f} s", flush=True)
        _keep(out, {"runs": dict(sorted(runs.items()))})


def _short(number: float | None) -> float | None:
    """A float32 in nine digits, which are enough to restore it."""
    return None if number is None or not np.isfinite(number) else float(f"{number:.9g}")


def _keep(out: Path, record: dict[str, Any]) -> None:
    """Write the record with one line for each run, or row."""
    ((head, entries),) = ((key, part) for key, part in record.items() if key in ("runs", "rows"))
    other_entries = {key: value for key, value in record.items() if key != head}
    if isinstance(entries, dict):
        lines = [f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in entries.items()]
        text = "{\n" + ",\n".join(lines) + "\n}"
    else:
        text = "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]"
    before = "".join(
        f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in other_entries.items()
    )
    write_whole(out, "{" + before + json.dumps(head) + ": " + text + "}\n")


# --- what is planted --------------------------------------------------------------------------


def planted(work: Path, only: str, steps: int) -> None:
    out = KEPT / "bert_planted.json"
    rows = json.loads(out.read_text())["rows"] if out.exists() else []
    for optimizer, (options, names) in PLANTED.items():
        wanted = [name for name in names if fnmatch.fnmatch(f"{optimizer}/{name}", only)]
        known = {(row["optimizer"], row["planted"]) for row in rows}
        wanted = [name for name in wanted if (optimizer, name) not in known]
        if not wanted:
            continue
        plain = f"{options} --steps {steps}"
        base = trained(work / f"planted@{optimizer}", "torch", plain)
        nulls = [
            losses_of(
                trained(
                    work / f"planted@{optimizer}@{null}", "torch", f"{plain} --captured {extra}",
                    environment,
                )
            )
            for null, (extra, environment) in NULLS.items()
        ]  # fmt: skip
        for name in wanted:
            folder = work / f"planted@{optimizer}@{name}"
            trained(folder, "torch", f"{plain} --planted {name}")
            row = {"optimizer": optimizer, "planted": name, **_named(base, folder)}
            losses, right = losses_of(folder), losses_of(base)
            apart = np.abs(losses - right)
            row["curve"] = leaves(losses, right, nulls)
            row["apart"] = [_short(apart[at]) for at in (1, 10, 50, 100, 199) if at < len(apart)]
            rows.append(row)
            line = f"{optimizer:9} {name:18} {row['step']!s:>4} {row['curve']!s:>5}  {row['says']}"
            print(line, flush=True)
            _keep(out, {"steps": steps, "nulls": list(NULLS), "rows": rows})


def _named(base: Path, folder: Path) -> dict[str, Any]:
    """What align says of step 0; of steps 0 to 2 where step 0 shows no difference."""
    began = time.perf_counter()
    for steps in ([0], [0, 1, 2]):
        alignment = align(base, folder, steps=steps)
        if alignment.verdict.word == "different":
            break
    first = alignment.verdict.first
    cause = getattr(first.source, "cause", None) if first else None
    return {
        "verdict": alignment.verdict.word,
        "step": None if first is None else first.step,
        "topic": None if first is None else first.topic,
        "where": None if first is None else first.where,
        "cause": cause,
        "says": page.headline(alignment.to_dict()),
        "seconds": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("curves", "planted"))
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bert_alignment")
    parser.add_argument("--only", default="*", help="of the names that are printed")
    parser.add_argument("--steps", type=int, default=200, help="of planted")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    if arguments.what == "curves":
        curves(arguments.work, arguments.only)
    else:
        planted(arguments.work, arguments.only, arguments.steps)


if __name__ == "__main__":
    main()
