"""The speed of the oracles beside their peers, in one run: a table and the times behind it.

    python benchmarks/speed.py [--out benchmarks/results/NAME] [--quick] [--without SECTION]

Takes five minutes on two cores. The contestants of a table take turns, round by round; figures are
medians with quartiles, and ratios are taken within a round, per element. Slow peers compute fewer
elements; the tables say how many. Writes speed.md and speed.json; the exit status is 1 where a bar
is missed.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cold_start
import numba
import numpy as np
import peers
import sections
import sweeping
import tables
import whole_ops
from stopwatch import Row

from refkernels import registry
from refkernels.records.files import write_whole

RESULTS = Path(__file__).parent / "results"
LIMIT = 360.0  # seconds; sections that would begin later are left out, and the report says so

FORMULAS = {(64, 256): 1.0, (4096, 1024): 6.0}
WHOLE = {"attention": (8, 256, 64), "cross_entropy": (4096, 1024), "adamw": (10_000_000,)}
LAYERNORM = {(256, 256): 2.0, (2048, 768): 5.0, (8192, 1024): 20.0}

Section = tuple[str, Callable[[], Iterator[Row]]]


def plan(torch: peers.Torch, quick: bool) -> list[Section]:
    """(name, how to run it), in order; every size from small to large."""
    scale = 0.02 if quick else 1.0
    steps: list[Section] = [
        ("startup", lambda: cold_start.startup(8.0 * scale)),
        ("startup of first answers", lambda: cold_start.first_answers(1 if quick else 3)),
    ]

    def add(name: str, step: Callable[..., Iterator[Row]], *arguments: Any, seconds: float) -> None:
        steps.append((name, lambda: step(*arguments, seconds * scale)))

    counts = {2000: 1.0} if quick else {100_000: 1.0, 1_000_000: 2.0, 16_000_000: 8.0}
    for n, seconds in counts.items():
        add(f"statistics {n}", sections.statistics, n, seconds=seconds)
    shapes = {(16, 32): 1.0, (64, 48): 1.0} if quick else LAYERNORM
    for shape, seconds in shapes.items():
        add(f"layernorm {shape}", sections.rows, "layernorm", shape, torch, seconds=seconds)
    for op in sections.FORMULAS:
        for shape, seconds in ({(16, 32): 1.0} if quick else FORMULAS).items():
            add(f"formulas {op} {shape}", sections.rows, op, shape, torch, seconds=seconds)
    for op, shape in WHOLE.items():
        shape = tuple(min(length, 16) for length in shape) if quick else shape
        add(f"whole {op}", whole_ops.forward, op, shape, torch, seconds=8.0)
    lengths = {1000: 0.5, 5000: 0.5} if quick else {1000: 0.5, 100_000: 1.0, 4_000_000: 5.0}
    for op in sections.FUNCTIONS:
        for n, seconds in lengths.items():
            add(f"elementwise {op} {n}", sections.elementwise, op, n, torch, seconds=seconds)
    orders = {64: 1.0, 96: 1.0} if quick else {256: 3.0, 512: 5.0, 1024: 15.0, 2048: 15.0}
    for n, seconds in orders.items():
        add(f"matmul {n}", sections.matmul, n, seconds=seconds)
    fast = ["sin", *(name for name, op in registry.ops().items() if op.fast and name != "sin")]
    asked = (fast[:2], 1 << 6) if quick else (fast, 1 << 15)
    steps.append(("binades", lambda: sweeping.binades(*asked)))
    patterns = range(0x3F800000, 0x3FC00000) if quick else range(1 << 32)
    for op in ("sin",) if quick else sweeping.BARS:
        steps.append((f"sweep {op}", lambda op=op: sweeping.sweep(op, torch, patterns)))
    return steps


def environment(torch: peers.Torch) -> dict[str, Any]:
    versions = {"NumPy": np.__version__, "Numba": numba.__version__, "torch": torch.version}
    for name in ("mpmath", "gmpy2", "flint"):
        try:
            versions[name] = str(peers.module(name).__version__)
        except RuntimeError as error:
            versions[name] = str(error)
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        cpu = models[0] if models else cpu
    return {
        "cpu": cpu, "threads": numba.get_num_threads(), "python": platform.python_version(),
        "platform": platform.platform(), "versions": versions,
        "load_at_start": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }  # fmt: skip


def run(steps: list[Section], limit: float) -> tuple[list[Row], list[str]]:
    """The rows, and what was left out and why."""
    rows: list[Row] = []
    left_out: list[str] = []
    began = time.perf_counter()
    for name, step in steps:
        now = time.perf_counter() - began
        if now > limit:
            left_out.append(f"{name}: the time was over")
            continue
        print(f"{now:5.0f} s  {name}", file=sys.stderr, flush=True)
        try:
            rows.extend(step())
        except Exception as error:
            left_out.append(f"{name}: {type(error).__name__}: {error}")
    return rows, left_out


def main() -> int:
    name = f"cpu-{platform.machine()}-{platform.system()}".lower()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / name)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all?")
    parser.add_argument("--without", action="append", default=[], help="A section. Repeatable.")
    arguments = parser.parse_args()
    cold_start.keep_bytecode()
    began = time.perf_counter()
    torch = peers.Torch(numba.get_num_threads())
    try:
        details = environment(torch)
        steps = plan(torch, arguments.quick)
        chosen = [step for step in steps if step[0].split()[0] not in arguments.without]
        rows, left_out = run(chosen, LIMIT)
    finally:
        torch.close()
    details["seconds"] = round(time.perf_counter() - began, 1)
    record = {"environment": details, "left_out": left_out, "rows": [row.record() for row in rows]}
    text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    write_whole(arguments.out / "speed.json", f"{text}\n")
    path = write_whole(arguments.out / "speed.md", tables.markdown(rows, details, left_out))
    print(tables.bars(rows))
    print(f"\nwritten: {path} ({details['seconds']} s)")
    return 1 if any(row.met is False for row in rows) or left_out else 0


if __name__ == "__main__":
    sys.exit(main())
