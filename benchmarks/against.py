"""Two versions of refkernels, timed: which pieces of work became slower?

    python benchmarks/against.py OLD NEW [--pairs 9] [--only TEXT] [--out FILE]

OLD and NEW are checkouts or wheels; both run in this interpreter, each with compiled kernels of its
own, which are kept under --cache. Every piece of `workloads.py` runs in new processes: old new, new
old, old new, ... so that other load slows both alike. Prints medians of the processor time of all
threads and of wall time, and the ratio new / old: its median over pairs, with quartiles. The exit
status is 1 where a median ratio of processor times is above 1.05.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import bytecode
import workloads
from stopwatch import quartiles

WORSE = 1.05
CLOCKS = ("processor", "wall")
Times = dict[str, float]


@dataclass
class Side:
    """A version: where `refkernels` is imported from, and where its kernels are kept."""

    package: Path
    cache: Path

    def run(self, name: str) -> Times:
        """The work's times in a new process. Raises RuntimeError with its last line of error."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.package),
            "NUMBA_CACHE_DIR": str(self.cache),
        }
        command = [sys.executable, workloads.__file__, name]
        completed = subprocess.run(command, env=environment, capture_output=True, text=True)
        if completed.returncode:
            raise RuntimeError((completed.stderr.strip().splitlines() or ["it failed"])[-1][:160])
        times: Times = json.loads(completed.stdout.splitlines()[-1])
        return times


@dataclass
class Comparison:
    """One piece of work in both versions; `missing`: why there are no times."""

    name: str
    old: list[Times] = field(default_factory=list)
    new: list[Times] = field(default_factory=list)
    missing: str | None = None

    def ratios(self, clock: str) -> list[float]:
        """new / old, pair by pair."""
        pairs = zip(self.old, self.new, strict=True)
        return [new[clock] / old[clock] for old, new in pairs if old[clock] > 0]

    def medians(self, clock: str) -> tuple[float, float]:
        old, new = (
            statistics.median(times[clock] for times in side) for side in (self.old, self.new)
        )
        return old, new

    @property
    def worse(self) -> bool:
        return self.missing is None and statistics.median(self.ratios("processor")) > WORSE


def side(path: Path, cache: Path, name: str) -> Side:
    """A checkout as it is; a wheel unpacked. Raises ValueError for anything else."""
    if path.suffix == ".whl":
        folder = cache / f"{name}-{path.stem}"
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(folder)
        path = folder
    if not (path / "refkernels" / "__init__.py").exists():
        raise ValueError(f"{path} is neither a checkout nor a wheel of refkernels.")
    return Side(path.absolute(), cache / name)


def compare(name: str, old: Side, new: Side, pairs: int) -> Comparison:
    """`pairs` pairs, after one that compiles and is not counted."""
    comparison = Comparison(name)
    try:
        old.run(name), new.run(name)
        for number in range(pairs):
            if number % 2:
                second = new.run(name)
                first = old.run(name)
            else:
                first = old.run(name)
                second = new.run(name)
            comparison.old.append(first)
            comparison.new.append(second)
    except RuntimeError as error:
        comparison.missing = str(error)
    return comparison


def table(comparisons: list[Comparison]) -> str:
    """As Markdown; bold: more than 1.05."""
    lines = [
        "| work | old, processor | new | ratio | old, wall | new | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for comparison in comparisons:
        if comparison.missing:
            lines.append(f"| {comparison.name} | missing: {comparison.missing} | | | | | |")
            continue
        cells = [comparison.name]
        for clock in CLOCKS:
            old, new = comparison.medians(clock)
            cells += [_time(old), _time(new), _ratio(comparison.ratios(clock))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _ratio(ratios: list[float]) -> str:
    median, spread = statistics.median(ratios), quartiles(ratios)
    text = f"**{median:.2f}**" if median > WORSE else f"{median:.2f}"
    return text if spread is None else f"{text} ({spread[0]:.2f} to {spread[1]:.2f})"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--only", action="append", default=[], help="Part of a name. Repeatable.")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "refkernels")
    parser.add_argument("--out", type=Path, help="Keeps all times here, as JSON.")
    arguments = parser.parse_args()
    try:
        old, new = (
            side(getattr(arguments, name), arguments.cache, name) for name in ("old", "new")
        )
    except ValueError as error:
        parser.error(str(error))
    bytecode.keep(old.package / "refkernels", new.package / "refkernels")
    comparisons = []
    for name in workloads.workloads():
        if not arguments.only or any(part in name for part in arguments.only):
            comparisons.append(compare(name, old, new, arguments.pairs))
            print(table(comparisons[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    if arguments.out is not None:
        record = [vars(comparison) for comparison in comparisons]
        arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(table(comparisons))
    return int(
        not comparisons or any(comparison.worse or comparison.missing for comparison in comparisons)
    )


if __name__ == "__main__":
    sys.exit(main())
