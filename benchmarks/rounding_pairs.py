"""Pairs of trainings that differ in rounding only: how many does `refkernels align` suspect?

    python benchmarks/rounding_pairs.py --work FOLDER [--out FILE]

200 pairs of one definition each, in float32, 40 steps. 168 are of a small transformer in torch:
three optimizers, two seeds; one weight moved by an ulp, batches in another order, two threads,
other vector instructions, MKL's compatible kernels. 32 are of examples' BERT in torch and in
paddle, with four optimizers. Each definition has 19 null runs, each with one weight moved by an
ulp; the BERT's are of both frameworks. Counted: alarms (p < 0.005 by either of the curves'
p-values) and verdicts "different definition". FILE keeps the counts, and every pair's figures; what
FILE or FOLDER holds is not repeated.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from refkernels.alignment.align import conclude
from refkernels.alignment.local import LocalJudgement, LocalTruth, judge_run
from refkernels.alignment.noise import compared, representative
from refkernels.alignment.run import Run
from refkernels.alignment.verdict import LEVEL
from refkernels.frameworks import environments
from refkernels.records.files import write_whole

ROOT = Path(__file__).parent.parent
STEPS, PAIRS = "40", 200
FILES = (
    "refkernels/capture.py", "tests/alignment/planted_training.py", "examples/train_bert.py",
    "benchmarks/rounding_training.py",
)  # fmt: skip
SMALL = [(name, seed) for name in ("right", "plain_adam", "sgd") for seed in ("1", "2")]
BERT = [("sgd", "1e-3"), ("sgd", "1e-1"), ("adam", "1e-3"), ("adamw", "1e-3")]
ROUNDINGS = ["base", "ulp1", "ulp2", "rows1", "rows2", "threads"]
MACHINES = {  # vector instructions and kernels, by the environment
    "isa": {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "mkl": {"MKL_CBWR": "COMPATIBLE"},
}
ULPS = [f"ulp{seed}" for seed in range(10, 29)]
OF_BERT = {"torch": ["base", "ulp1"], "paddle": ["base", "ulp1", "ulp2", "ulp3"]}
BERT_ULPS = {"torch": ULPS[:10], "paddle": ULPS[10:]}  # null runs


def train(
    work: Path, folder: str, framework: str, definition: tuple[str, str], variants: list[str],
    **environment: str,
) -> None:  # fmt: skip
    """Trains the runs that are not there yet."""
    missing = [
        variant for variant in variants if not _whole(work / folder / variant.replace(":", "_"))
    ]
    for variant in missing:  # what a stopped training left
        shutil.rmtree(work / folder / variant.replace(":", "_"), ignore_errors=True)
    if missing:
        variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        variables.pop("PYTHONPATH", None)
        optimizer, seed = definition
        subprocess.run(
            [environments.find(framework).python, "rounding_training.py", folder, STEPS, seed,
             optimizer, *missing],
            cwd=work, env=variables, check=True, stdout=subprocess.DEVNULL,
             stderr=subprocess.DEVNULL,
        )  # fmt: skip


def _whole(folder: Path) -> bool:
    try:
        return json.loads((folder / "rank_0" / "run.json").read_text())["complete"] is True
    except OSError:
        return False


def small(definition: tuple[str, str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Pairs and null runs of the small transformer."""
    folder = "small_{}_{}".format(*definition)
    variants = (*ROUNDINGS, *(f"{name}/base" for name in MACHINES))
    runs = [f"{folder}/{variant}" for variant in variants]
    return list(itertools.combinations(runs, 2)), [f"{folder}/{variant}" for variant in ULPS]


def train_small(work: Path, definition: tuple[str, str]) -> None:
    folder = "small_{}_{}".format(*definition)
    train(work, folder, "torch", definition, [*ROUNDINGS, *ULPS])
    for name, environment in MACHINES.items():
        train(work, f"{folder}/{name}", "torch", definition, ["base"], **environment)


def bert(definition: tuple[str, str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Pairs and null runs of the BERT, in two frameworks."""
    folder = "bert_{}_{}".format(*definition)
    pairs = [
        (f"{folder}/torch_{mine}", f"{folder}/paddle_{theirs}")
        for mine, theirs in itertools.product(OF_BERT["torch"], OF_BERT["paddle"])
    ]
    return pairs, [f"{folder}/{name}_{ulp}" for name, ulps in BERT_ULPS.items() for ulp in ulps]


def train_bert(work: Path, definition: tuple[str, str]) -> None:
    for framework, roundings in OF_BERT.items():
        variants = [f"{framework}:{variant}" for variant in (*roundings, *BERT_ULPS[framework])]
        train(work, "bert_{}_{}".format(*definition), framework, definition, variants)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    work = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(ROOT / name, work)
    shutil.copytree(ROOT / "examples" / "data", work / "data", dirs_exist_ok=True)
    journal = work / "pairs.jsonl"
    is_kept = arguments.out is not None and arguments.out.exists()
    rows = json.loads(arguments.out.read_text())["rows"] if is_kept else []
    if journal.exists():
        known = {(row["a"], row["b"]) for row in rows}
        lines = map(json.loads, journal.read_text().splitlines())
        rows += [row for row in lines if (row["a"], row["b"]) not in known]
    done = {(row["a"], row["b"]) for row in rows}
    for runs_of, train_all, definitions in ((small, train_small, SMALL), (bert, train_bert, BERT)):
        for definition in definitions:
            pairs, nulls = runs_of(definition)
            left = [pair for pair in pairs if pair not in done]
            if not left:
                continue
            train_all(work, definition)
            runs: dict[str, tuple[Run, LocalTruth]] = {}
            curves = [Run.read(work / name) for name in nulls]
            frameworks = dict.fromkeys(run.first.framework for run in curves)
            speaking = {name: representative(name, curves) or curves[0] for name in frameworks}
            null = {name: judge_run(run).judgements for name, run in speaking.items()}
            for pair in left:
                for name in pair:
                    if name not in runs:
                        run = Run.read(work / name)
                        runs[name] = run, judge_run(run)
                rows.append(_row(pair, [runs[name] for name in pair], curves, null))
                with journal.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                _say(rows)
            if arguments.out:
                record = {"of": PAIRS, **_counts(rows), "rows": rows}
                write_whole(arguments.out, json.dumps(record, indent=1) + "\n")


def _row(
    pair: tuple[str, str],
    known: list[tuple[Run, LocalTruth]],
    nulls: list[Run],
    null: Mapping[str, Sequence[LocalJudgement]],
) -> dict[str, Any]:
    runs, local = zip(*known, strict=True)
    nulls_by_run = [null[run.first.framework] for run in runs]
    noise = compared([truth.judgements for truth in local], nulls_by_run)
    conclusion = conclude(runs, local, nulls, noise=noise)
    curve, verdict = conclusion.curve, conclusion.verdict
    assert curve is not None
    return {
        "a": pair[0], "b": pair[1], "verdict": verdict.word,
        "says": [r.word for r in verdict.reasons] + [s.topic for s in verdict.suspects],
        "p": curve.p, "p_normal": curve.p_normal, "extreme": curve.extreme,
        "wider": noise.wider, "invalid": noise.invalid, "statistic": curve.statistic,
        "step": curve.step,
    }  # fmt: skip


def _counts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    alarms = [row for row in rows if min(row["p"], row["p_normal"] or 1.0) < LEVEL]
    return {
        "pairs": len(rows),
        "alarms": len(alarms),
        "verdicts": dict(collections.Counter(row["verdict"] for row in rows)),
    }


def _say(rows: list[dict[str, Any]]) -> None:
    row, counts = rows[-1], _counts(rows)
    print(f"{len(rows):3} {row['a']} {row['b']}: {row['verdict']} {row['says']}; {counts}",
          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
