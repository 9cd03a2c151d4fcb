"""One version of refkernels beside another: which pieces of work take longer than they did?

    python benchmarks/against.py OLD NEW [--pairs 9] [--only TEXT] [--out FILE]

OLD and NEW are checkouts or wheels; both run in this interpreter, each with compiled kernels of its
own, which are kept under --cache. Every piece of `workloads.py` runs in new processes: old new, new
old, old new, ... so that what slows the machine slows both. Prints medians of the processor time of
all threads and of wall time, and the ratio new / old, the median over pairs with its quartiles. The
exit status is 1 where a median takes more than 1.05 times as long, in processor time.
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
        """The work's times in a new process. Raises RuntimeError with its last line."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.package),
            "NUMBA_CACHE_DIR": str(self.cache),
        }
        command = [sys.executable, workloads.__file__, name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["it failed"])[-1][:160])
        times: Times = json.loads(done.stdout.splitlines()[-1])
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


def side(given: Path, cache: Path, name: str) -> Side:
    """A checkout as it is; a wheel unpacked. Raises ValueError for what is neither."""
    if given.suffix == ".whl":
        folder = cache / f"{name}-{given.stem}"
        with zipfile.ZipFile(given) as wheel:
            wheel.extractall(folder)
        given = folder
    if not (given / "refkernels" / "__init__.py").exists():
        raise ValueError(f"{given} is neither a checkout nor a wheel of refkernels.")
    return Side(given.absolute(), cache / name)


def compare(name: str, old: Side, new: Side, pairs: int) -> Comparison:
    """`pairs` pairs, after one that is not counted: it compiles."""
    found = Comparison(name)
    try:
        old.run(name), new.run(name)
        for number in range(pairs):
            if number % 2:
                second = new.run(name)
                first = old.run(name)
            else:
                first = old.run(name)
                second = new.run(name)
            found.old.append(first)
            found.new.append(second)
    except RuntimeError as error:
        found.missing = str(error)
    return found


def table(found: list[Comparison]) -> str:
    """As Markdown; bold: more than 1.05."""
    lines = [
        "| work | old, processor | new | ratio | old, wall | new | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for one in found:
        if one.missing:
            lines.append(f"| {one.name} | missing: {one.missing} | | | | | |")
            continue
        cells = [one.name]
        for clock in CLOCKS:
            old, new = one.medians(clock)
            cells += [_time(old), _time(new), _ratio(one.ratios(clock))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _ratio(ratios: list[float]) -> str:
    median, spread = statistics.median(ratios), quartiles(ratios)
    shown = f"**{median:.2f}**" if median > WORSE else f"{median:.2f}"
    return shown if spread is None else f"{shown} ({spread[0]:.2f} to {spread[1]:.2f})"


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
    found = []
    for name in workloads.workloads():
        if not arguments.only or any(part in name for part in arguments.only):
            found.append(compare(name, old, new, arguments.pairs))
            print(table(found[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    if arguments.out is not None:
        kept = [vars(one) for one in found]
        arguments.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(table(found))
    return int(not found or any(one.worse or one.missing for one in found))


if __name__ == "__main__":
    sys.exit(main())
