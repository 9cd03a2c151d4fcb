"""Diagnosis as a benchmark: planted faults must be named, right kernels must not be blamed.

    python benchmarks/diagnosis.py [--seeds 3] [--right 2000] [--out FOLDER] [--journal FILE]

A fault counts where it shows: the verdict is worse than rounding, or the output is unusual. Then
its cause must be named first, and no other may be proven or matched, wherever it stands. Ops that
are formulas bring their own faults, all of which are planted (`every_op`); the others are written
by hand (`faults`), and `fault_matrix` plants what any op may have. A right kernel is blamed where
its verdict is worse than rounding, or a cause other than an order of summation is named. Writes
diagnosis.md and prints the confusion matrix. The kept results are of 5,000 right kernels. FILE has
a line for each kernel that is explained; a run with the same FILE and sizes resumes after them.
"""

from __future__ import annotations

import argparse
import collections
import json
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import every_op
import faults
from planted import Planted

import refkernels
from refkernels.records.files import write_whole
from refkernels.records.words import SOUND

RESULTS = Path(__file__).parent / "results"
ORDERS = (None, "summation_order", "bias_first")


def examine(name: str, planted: Planted) -> dict[str, Any]:
    """One kernel explained: what was planted, what was named, whether it shows."""
    start = time.perf_counter()
    direction: Any = planted.direction
    explanation = refkernels.explain(
        planted.op, planted.inputs, planted.outputs, planted.params, direction
    )
    shows = explanation.verdict not in SOUND or "unusual" in explanation.flags
    named = explanation.cause
    true = {planted.cause, *planted.also, *ORDERS}
    sure = {c.cause for c in explanation.candidates if c.confidence in ("proven", "matched")}
    right = named == planted.cause or named in planted.also
    return {
        "name": name,
        "planted": planted.cause,
        "named": named,
        "confidence": explanation.confidence,
        "op": planted.op,
        "direction": planted.direction,
        "dtype": planted.dtype,
        "verdict": explanation.verdict,
        "flags": list(explanation.flags),
        "shows": shows,
        "wrong": sorted(sure - true),
        "right": right if planted.cause else explanation.verdict in SOUND and named in ORDERS,
        "seconds": round(time.perf_counter() - start, 3),
    }


def missed(record: dict[str, Any]) -> bool:
    """Whether a fault that shows is called something else, or a right kernel is blamed."""
    return not record["right"] and (record["planted"] is None or record["shows"])


def hidden(records: list[dict[str, Any]]) -> list[str]:
    """The faults that no kernel shows: op, direction and cause."""
    shown: dict[str, bool] = {}
    for record in records:
        if record["planted"]:
            name = f"{record['op']} {record['direction']} {record['planted']}"
            shown[name] = shown.get(name, False) or record["shows"]
    return [name for name, shows in shown.items() if not shows]


def matrix(records: list[dict[str, Any]]) -> list[str]:
    """The confusion matrix as Markdown, one line for each cause planted."""
    lines = ["| planted | kernels | shows | named first | called |", "|---|--:|--:|--:|---|"]
    for cause in dict.fromkeys(record["planted"] for record in records):
        of_cause = [record for record in records if record["planted"] == cause]
        showing = [record for record in of_cause if record["shows"]]
        counts = collections.Counter(str(record["named"]) for record in of_cause)
        names = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        named = sum(record["right"] for record in (showing if cause else of_cause))
        label = cause or "nothing (right kernels)"
        lines.append(f"| {label} | {len(of_cause)} | {len(showing)} | {named} | {names} |")
    return lines


def kernels(seeds: int, right: int) -> Iterator[tuple[str, Planted]]:
    """All kernels with their names, in the order of the table."""
    half = right // 2
    yield from faults.planted(seeds)
    yield from every_op.planted(seeds)
    yield from faults.right(right - half)
    yield from every_op.right(half)


def kept(journal: Path | None) -> list[dict[str, Any]]:
    """The records of a journal, without a last line that was cut off."""
    if journal is None or not journal.exists():
        return []
    lines = journal.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def run(
    seeds: int, right: int, journal: Path | None = None, progress: bool = False
) -> list[dict[str, Any]]:
    """All records, those of the journal as they are."""
    records = kept(journal)
    if journal is not None:
        write_whole(journal, "".join(json.dumps(record) + "\n" for record in records))
    for number, (name, kernel) in enumerate(kernels(seeds, right)):
        if number < len(records):
            if records[number]["name"] != name:
                raise ValueError(f"{journal} is of another run: kernel {number} is {name}")
            continue
        record = examine(name, kernel)
        records.append(record)
        if journal is not None:
            with journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        if progress and missed(record):
            print(record, file=sys.stderr, flush=True)
        if progress and len(records) % 50 == 0:
            count = sum(missed(record) for record in records)
            print(f"{len(records)} kernels, {count} missed", file=sys.stderr, flush=True)
    return records


def report(records: list[dict[str, Any]]) -> str:
    """The Markdown page."""
    bad = [record for record in records if missed(record)]
    wrong = [record for record in records if record["wrong"]]
    lines = ["# Diagnosis", "", *matrix(records), ""]
    if unseen := hidden(records):
        lines += ["Faults that are rounding on every case planted: " + ", ".join(unseen) + ".", ""]
    lines += [f"Missed or blamed: {len(bad)}.", ""]
    for record in bad:
        verdict = f"{record['named']} ({record['confidence']}), {record['verdict']}"
        lines.append(f"- {record['name']} ({record['op']} {record['direction']}): {verdict}")
    lines += ["", f"Proven or matched besides, and not planted: {len(wrong)}.", ""]
    for record in wrong:
        names = ", ".join(record["wrong"])
        lines.append(f"- {record['name']} ({record['op']} {record['direction']}): {names}")
    return "\n".join(lines) + "\n"


def main() -> int:
    """0 where the bars are met."""
    name = f"cpu-{platform.machine()}-{platform.system()}".lower()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--right", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=RESULTS / name)
    parser.add_argument("--journal", type=Path)
    arguments = parser.parse_args()
    records = run(arguments.seeds, arguments.right, arguments.journal, progress=True)
    text = report(records)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_whole(arguments.out / "diagnosis.md", text)
    print(text)
    return int(any(missed(record) or record["wrong"] for record in records))


if __name__ == "__main__":
    sys.exit(main())
