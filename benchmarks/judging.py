"""What `judge` and the usual rules say about the same kernels, cheats and right ones.

    python benchmarks/judging.py [--seeds 1] [--first 0] [--op OP] [--sample N]   adds runs to
                                                                                  judging.jsonl
    python benchmarks/judging.py --seconds                  adds what the default level takes to
                                                            judging-default.jsonl
    python benchmarks/judging.py --tables                   writes judging.json and judging.md

A run is a line. Runs that are kept are not repeated: the benchmark can be stopped at any time. Each
names its judge, by a digest of the sources.

    1e-2, 1e-4      allclose with rtol = atol
    1e-5            torch.testing.assert_close's defaults for float32: rtol 1.3e-6, atol 1e-5
    2 x             FlashAttention's: the largest error is at most twice NumPy's
    benchdnn        oneDNN's: an error relative to |y|, or to 1 where |y| is at most 1e-5

The first four use the inputs of public harnesses: uniform numbers of [0, 1) in one shape, and
NumPy's answer in float32; where an op has integers too, they and the shape are those of its largest
usual case. benchdnn's thresholds belong to its own inputs and are tried on similar
ones: small integers for a product, whose bits must be right; numbers whose exact sums make the
statistics exact for LayerNorm; few large values for softmax; several ranges for gelu. `judge` draws
its own inputs, new ones for each seed.

The seconds are processor seconds, of the judge and the kernel's processes together, for the first
right kernel of each op. The judge's own clock counts them too, so that a loaded machine stops it
where an idle one would.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import refkernels
from refkernels import registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.frameworks import catalog, environments
from refkernels.frameworks.cells import Cell, CellCall, CellReply
from refkernels.frameworks.remote import kernel_adapter
from refkernels.judging.examination import Examinations
from refkernels.judging.judge import judge
from refkernels.records.files import write_whole
from refkernels.truth import Truth

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "judge"))
import listing

RESULTS = Path(__file__).parent / "results" / "cpu-x86_64-linux"
RUNS, RULED, PAGE = (RESULTS / f"judging.{end}" for end in ("jsonl", "json", "md"))
SECONDS = RESULTS / "judging-default.jsonl"
FOLDERS = ("cheats", "right")
SHAPES = {
    "matmul": {"a": (48, 256), "b": (256, 48)},
    "softmax": {"x": (64, 768)},
    "layernorm": {"x": (64, 768), "weight": (768,), "bias": (768,)},
    "gelu": {"x": (64, 768)},
    "cross_entropy": {"x": (64, 768)},
    "rms_norm": {"x": (64, 768), "weight": (768,)},
    "attention": dict.fromkeys(("q", "k", "v"), (2, 4, 64, 64)),
    "conv2d": {"x": (2, 8, 28, 28), "weight": (8, 8, 3, 3), "bias": (8,)},
    "sum": {"x": (64, 768)},
    "batch_norm": {
        "x": (16, 8, 48), "weight": (8,), "bias": (8,), "running_mean": (8,), "running_var": (8,),
    },
    "adamw": dict.fromkeys(("param", "grad", "m", "v"), (64, 768)),
    "adam": dict.fromkeys(("param", "grad", "m", "v"), (64, 768)),
    "lamb": dict.fromkeys(("param", "grad", "m", "v"), (64, 768)),
    "adagrad": dict.fromkeys(("param", "grad", "accum"), (64, 768)),
    "sgd": dict.fromkeys(("param", "grad", "buf"), (64, 768)),
    "linear": {"x": (48, 256), "weight": (48, 256), "bias": (48,)},
    "mean": {"x": (64, 768)},
    "var": {"x": (64, 768)},
    "log_softmax": {"x": (64, 768)},
    "group_norm": {"x": (16, 8, 48), "weight": (8,), "bias": (8,)},
}  # fmt: skip
LEFT_OUT = ("folder", "own_sizes", "tasks", "mutants")  # no verdict depends on mutants
RULES = ("1e-2", "1e-4", "1e-5", "2 x", "benchdnn")
BENCHDNN = {"matmul": 0.0, "softmax": 10 * 2.0**-23, "layernorm": 5e-7, "gelu": 4e-6}
Arrays = dict[str, Any]


def kernels(folder: str) -> Iterable[tuple[Path, str, str]]:
    """File, function and op."""
    return listing.right() if folder == "right" else listing.cheats()


def label(path: Path, function: str) -> str:
    return f"{path.parent.name}/{path.stem}.py:{function}"


def uniform(op: str) -> Arrays:
    rng = np.random.default_rng(42)
    if op not in SHAPES:
        usual = _usual_case(op)
        return {
            name: rng.random(array.shape).astype(array.dtype) if _is_float32(array) else array
            for name, array in usual.items()
        }
    drawn: Arrays = {n: rng.random(shape).astype(np.float32) for n, shape in SHAPES[op].items()}
    return {**drawn, "target": rng.integers(0, 768, 64)} if op == "cross_entropy" else drawn


def _is_float32(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == np.float32


def _usual_case(op: str) -> Arrays:
    """The largest case of the op with its usual params and at most 2^16 elements."""
    known = registry.get(op)
    cases = [case.build("float32") for case in known.cases() if "float32" in case.dtypes]
    usual = [
        {name: arrays[name] for name in known.takes("forward") if name in arrays}
        for arrays, params in cases
        if {**known.params, **params} == dict(known.params)
    ]
    sizes = {i: sum(np.size(a) for a in arrays.values()) for i, arrays in enumerate(usual)}
    return usual[max((i for i in sizes if sizes[i] <= 1 << 16), key=lambda i: sizes[i])]


def like_benchdnn(op: str) -> Arrays:
    """Inputs with the properties of benchdnn's."""
    rng, shapes = np.random.default_rng(42), SHAPES[op]
    if op == "matmul":
        drawn: Arrays = {name: rng.integers(-16, 17, shape) for name, shape in shapes.items()}
    elif op == "softmax":
        values = rng.choice((0, 88, 89, 90), shapes["x"], p=(0.82, 0.13, 0.04, 0.01))
        drawn = {"x": values * np.where(np.arange(64) % 2, 1, -1)[:, None]}
    elif op == "layernorm":  # pairs m (1 + f), m (1 - f), with f a multiple of 2^-6
        f = rng.integers(0, 64, (64, 384)) / 64
        mean = 0.25 * np.exp2(np.arange(64) % 7)[:, None]
        x = np.stack([mean * (1 + f), mean * (1 - f)], axis=-1).reshape(64, 768)
        weight = np.exp2(np.arange(768) % 7 - 3)
        drawn = {"x": x, "weight": weight, "bias": (np.arange(768) % 3 - 1) * weight / 64}
    else:
        tens, ones = rng.integers(0, 11, (64, 384)), rng.uniform(0.0, 0.9, (64, 384))
        sizes = (np.array([1, 10])[:, None, None] * tens, np.array([0.1, 1])[:, None, None] * ones)
        x = np.concatenate([part.reshape(64, 768) for part in sizes], axis=-1)[:, ::2]
        drawn = {"x": x * rng.choice((-1, 1), (64, 768))}
    return {name: array.astype(np.float32) for name, array in drawn.items()}


def answered(path: Path, function: str, op: str, inputs: Arrays) -> CellReply:
    """A cheat's answer from a process of its own; a right kernel's from this one."""
    spec, _ = catalog.target(f"{path}:{function}@op={op}")
    if path.parent.name == "right":
        kernel_adapter.begin(spec.framework.kernel)
        return CellReply("ok", outputs=kernel_adapter.called("forward", inputs, {}))
    with Cell(spec.framework, environments.find(spec)) as cell:
        cell.writable = True
        with cell.session() as session:
            return session.call(CellCall("forward", inputs, {}))


@cache
def truth(op: str, draw: Any) -> tuple[Arrays, Truth]:
    inputs = draw(op)
    known = registry.get(op)
    return inputs, Truth(known, "forward", inputs, known.params, BINARY32)


def passed(path: Path, function: str, op: str) -> dict[str, bool]:
    """The rules that the kernel passes; benchdnn has none for a loss."""
    first = registry.get(op).outputs[0]
    draws = (uniform, like_benchdnn) if op in BENCHDNN else (uniform,)
    replies = {draw: answered(path, function, op, draw(op)) for draw in draws}
    if any(r.status != "ok" or first not in r.outputs for r in replies.values()):
        return dict.fromkeys(RULES if op in BENCHDNN else RULES[:-1], False)
    _, known = truth(op, uniform)
    exact, theirs = np.asarray(known.reference[first]), known.plain()[first]
    got = replies[uniform].outputs[first]
    with np.errstate(invalid="ignore"):
        errors = [np.max(np.abs(answer - exact)) for answer in (got, theirs)]
    verdicts = {
        "1e-2": np.allclose(got, theirs, 1e-2, 1e-2),
        "1e-4": np.allclose(got, theirs, 1e-4, 1e-4),
        "1e-5": np.allclose(got, theirs, 1.3e-6, 1e-5),
        "2 x": bool(errors[0] <= 2 * errors[1]),
    }
    if op in BENCHDNN:
        verdicts["benchdnn"] = benchdnn(op, replies[like_benchdnn].outputs[first])
    return {rule: bool(verdict) for rule, verdict in verdicts.items()}


def benchdnn(op: str, got: Any) -> bool:
    """Whether every element is within oneDNN's threshold. Where the terms of an answer cancel, its
    error is relative to 1 (a gelu of a large negative number), or to the normalised number (a
    LayerNorm whose bias has the other sign)."""
    inputs, known = truth(op, like_benchdnn)
    exact = np.asarray(known.reference[registry.get(op).outputs[0]])
    right = exact.astype(np.float32).astype(float)
    error, threshold = np.abs(got - right), BENCHDNN[op]
    near = error <= threshold * np.where(np.abs(right) > 1e-5, np.abs(right), 1.0)
    if op == "gelu":
        wide = inputs["x"].astype(float)
        cancels = np.abs(exact) <= 2 * 2.0**-23 / threshold * np.abs(wide)  # 1 + erf <= 2 comp_err
        near |= (wide < 0) & cancels & (error <= threshold)
    if op == "layernorm":
        normed = np.abs(right - inputs["bias"])
        near |= (normed > np.abs(right)) & (error <= threshold * normed)
    return bool(np.all(near))


@cache
def version() -> str:
    """A digest of the sources of the judge, without those that only ask it or count mutants."""
    package = Path(refkernels.__file__).parent
    files = [p for p in sorted((package / "judging").glob("*.py")) if p.stem not in LEFT_OUT]
    files += [package / "frameworks" / "cells.py"]
    files += [package / "frameworks" / "remote" / f"{n}.py" for n in ("cell", "kernel_adapter")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def runs() -> list[dict[str, Any]]:
    """The runs that are kept."""
    return _lines(RUNS)


def _lines(file: Path) -> list[dict[str, Any]]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def run(seeds: range, ops: Collection[str], sample: int | None) -> None:
    """Every kernel on every seed, or only so many of each op and folder, drawn by the seed; the
    kernels of an op share the truths of a seed."""
    judged = {(line["kernel"], line["seed"]) for line in runs() if line["judge"] == version()}
    with RUNS.open("a", encoding="utf-8") as file:
        for seed in seeds:
            for judged_op in ops:
                shared = Examinations()
                for folder in FOLDERS:
                    of_op = [kernel for kernel in kernels(folder) if kernel[2] == judged_op]
                    drawn = np.random.default_rng(seed).permutation(len(of_op))[:sample]
                    for path, function, op in (of_op[i] for i in sorted(drawn)):
                        if (label(path, function), seed) in judged:
                            continue
                        found = verdict(path, function, op, seed, shared)
                        line = {"kernel": label(path, function), "op": op, "seed": seed}
                        line |= {"verdict": found, "judge": version()}
                        file.write(json.dumps(line) + "\n")
                        file.flush()


@np.errstate(all="ignore")
def verdict(path: Path, function: str, op: str, seed: int, shared: Examinations) -> str:
    """Of a cheat, at quick; of a right kernel, on the first round's inputs, in this process."""
    if path.parent.name == "right":
        return "wrong" if listing.faults(path, function, op, shared, seed)[1] else "right"
    settings: Any = {"level": "quick", "causes": False, "mutants": False}
    return judge(f"{path}:{function}", op, seed=seed, examinations=shared, **settings).verdict


def processor() -> float:
    """Processor seconds of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def time_default(ops: Collection[str]) -> None:
    """What the default level takes for the first right kernel of each op."""
    first = {op: (path, function) for path, function, op in reversed([*kernels("right")])}
    judged = {line["op"] for line in _lines(SECONDS) if line["judge"] == version()}
    module = import_module("refkernels.judging.judge")  # the module, not the function
    with SECONDS.open("a", encoding="utf-8") as file, mock.patch.object(module, "time") as clock:
        clock.monotonic = processor
        for op in ops:
            if op in judged:
                continue
            path, function = first[op]
            begin = processor(), time.monotonic()
            judgement = judge(f"{path}:{function}", op, seed=0)
            line = {"kernel": label(path, function), "op": op, "verdict": judgement.verdict}
            line |= {"processor": round(processor() - begin[0], 1)}
            line |= {"wall": round(time.monotonic() - begin[1], 1)}
            line |= {"asked": sum(count for count, _ in judgement.families.values())}
            line |= {"killed": len(judgement.killed), "alive": list(judgement.alive)}
            line |= {"flags": list(judgement.flags), "judge": version()}
            file.write(json.dumps(line) + "\n")
            file.flush()


def tables() -> None:
    """The rules' verdicts beside those of the runs of the last judge of each kernel."""
    verdicts: dict[str, set[str]] = defaultdict(set)
    last = {run["kernel"]: run["judge"] for run in runs()}
    of_last = [run for run in runs() if run["judge"] == last[run["kernel"]]]
    for run in of_last:
        verdicts[run["kernel"]].add(run["verdict"])
    rules = {
        label(path, function): passed(path, function, op)
        for folder in FOLDERS
        for path, function, op in kernels(folder)
    }
    right = [run for run in of_last if run["kernel"].startswith("right/")]
    by_kernel = {
        name: (len(runs_of), sum(run["verdict"] != "right" for run in runs_of))
        for name in {run["kernel"] for run in right}
        if (runs_of := [run for run in right if run["kernel"] == name])
    }
    record = {
        "rules": rules,
        "verdicts": {name: sorted(verdicts[name]) for name in rules},
        "runs": {"right": len(right), "cheats": len(of_last) - len(right)},
        "by_kernel": dict(sorted(by_kernel.items())),
        "refused": sum(run["verdict"] != "right" for run in right),
        "seeds": len({run["seed"] for run in right}),
        "judges": sorted({run["judge"] for run in of_last}),
    }
    write_whole(RULED, json.dumps(record, separators=(",", ":")) + "\n")
    write_whole(PAGE, "\n".join(_page(rules, verdicts, record)) + "\n")


def _page(
    rules: Mapping[str, Mapping[str, bool]], verdicts: Mapping[str, set[str]], record: Any
) -> Iterator[str]:
    yield "# What `judge` and the usual rules say of the same kernels\n"
    yield "By `python benchmarks/judging.py`; the rules are in its header. The kernels are those of"
    yield "`tests/judge`."
    yield f"\n| cheats | op | judge | {' | '.join(RULES)} |"
    yield f"|---|---|---|{'---|' * len(RULES)}"
    for path, function, op in kernels("cheats"):
        name = label(path, function)
        passes = {True: "passes", False: "fails", None: "–"}
        marks = " | ".join(passes[rules[name].get(rule)] for rule in RULES)
        yield f"| {function} | {op} | {', '.join(sorted(verdicts[name])) or 'not run'} | {marks} |"
    yield "\nOf the right kernels of an op: how many, how often they were judged and refused, and"
    yield "how many pass each rule. The seconds at default are the processor's, for the first of"
    yield "them, on a shared machine of two cores.\n"
    yield f"| op | kernels | runs | refused | {' | '.join(RULES)} | seconds at default |"
    yield f"|---|---|---|---|{'---|' * len(RULES)}---|"
    seconds = {line["op"]: line["processor"] for line in _lines(SECONDS)}
    by_op: dict[str, list[str]] = defaultdict(list)
    for path, function, op in kernels("right"):
        by_op[op].append(label(path, function))
    for op, names in by_op.items():
        known = [rules[name] for name in names]
        marks = " | ".join(
            str(sum(rule_passed[rule] for rule_passed in known)) if rule in known[0] else "–"
            for rule in RULES
        )
        counted = [record["by_kernel"].get(name, (0, 0)) for name in names]
        runs_of_op, refused = (sum(column) for column in zip(*counted, strict=True))
        taken = seconds.get(op, "–")
        yield f"| {op} | {len(names)} | {runs_of_op} | {refused} | {marks} | {taken} |"
    yield f"\n{record['refused']} of {record['runs']['right']} runs of right kernels, on"
    yield f"{record['seeds']} seeds, are not right. Judges, by the digest of their sources:"
    yield f"{', '.join(record['judges'])}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="how many draws of each kernel")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--op", action="append", choices=registry.ops(), help="its kernels only")
    parser.add_argument("--sample", type=int, help="at most so many kernels of each op")
    parser.add_argument("--seconds", action="store_true", help="time the default level")
    parser.add_argument("--tables", action="store_true", help="write the tables")
    arguments = parser.parse_args()
    if arguments.tables:
        tables()
    elif arguments.seconds:
        time_default(arguments.op or registry.ops())
    else:
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        run(seeds, arguments.op or registry.ops(), arguments.sample)


if __name__ == "__main__":
    main()
