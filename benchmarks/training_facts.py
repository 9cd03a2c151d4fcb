"""Checks the claims of a survey of training ops in four frameworks, by asking the frameworks again.

    python benchmarks/training_facts.py [--only START] [--resume [--again]] [--out FOLDER]

The survey was made by hand, before the oracles. Each of its claims that can be checked on a CPU is
a `Fact` in `facts/`: the frameworks are asked anew, the oracles judge, `explain` names the cause.
Writes training_facts.json; `tools/write_training_facts.py` makes a page of it.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from facts import clipping, curves, losses, norms, optimizers, reductions, schedules
from facts.asked import Fact, Seats

from refkernels.records.files import write_whole

RESULTS = Path(__file__).parent / "results"
SECTIONS = (optimizers, clipping, curves, losses, norms, reductions, schedules)
FACTS: list[Fact] = [fact for section in SECTIONS for fact in section.FACTS]


def record_of(fact: Fact, seats: Seats) -> dict[str, Any]:
    """What was seen, and the verdict: reproduced, differs (for a reason), or open."""
    seen = fact.see(seats, fact)
    reason = "" if seen.holds else fact.because
    return {
        "section": fact.section,
        "framework": fact.framework,
        "claim": fact.claim,
        "figure": fact.figure,
        "ours": seen.ours,
        "verdict": "reproduced" if seen.holds else "differs" if reason else "open",
        "because": reason,
        "script": seen.script,
    }


def answered(path: Path, facts: list[Fact], again: bool = False) -> dict[str, dict[str, Any]]:
    """The kept records of these facts, by name, except the open ones; with `again`, also except
    those that differ."""
    if not path.exists():
        return {}
    records, repeated = {}, {"open", "differs"} if again else {"open"}
    figures = {fact.name: fact.figure for fact in facts}
    for record in json.loads(path.read_text())["records"]:
        name = f"{record['section']} {record['framework']}: {record['claim']}"
        if record["verdict"] not in repeated and figures.get(name) == record["figure"]:
            records[name] = record
    return records


def ask(
    facts: list[Fact], path: Path | None, resume: bool, again: bool = False
) -> list[dict[str, Any]]:
    """A record for each fact, in their order, each written when it is there."""
    seats = Seats()
    records = answered(path, facts, again) if path is not None and resume else {}
    try:
        for fact in facts:
            if fact.name in records:
                continue
            start = time.perf_counter()
            record = records[fact.name] = record_of(fact, seats)
            seconds = time.perf_counter() - start
            line = f"{record['verdict']:10} {fact.name} | {fact.figure} | {record['ours']}"
            print(f"{line} | {seconds:.1f} s", flush=True)
            if path is not None:
                in_order = [records[fact.name] for fact in facts if fact.name in records]
                content = {"schema": 1, "kind": "training_facts", "records": in_order}
                text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
                write_whole(path, text)
    finally:
        seats.close()
    return [records[fact.name] for fact in facts]


def main() -> int:
    """0 where every claim is reproduced, or the difference explained."""
    name = f"cpu-{platform.machine()}-{platform.system()}".lower()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="facts whose names begin so; nothing is written")
    parser.add_argument("--resume", action="store_true", help="keep the answers that are not open")
    parser.add_argument("--again", action="store_true", help="nor those that are different")
    parser.add_argument("--out", type=Path, default=RESULTS / name)
    arguments = parser.parse_args()
    facts = [fact for fact in FACTS if fact.name.startswith(arguments.only or "")]
    path = arguments.out / "training_facts.json" if arguments.only is None else None
    records = ask(facts, path, arguments.resume, arguments.again)
    return int(any(record["verdict"] == "open" for record in records))


if __name__ == "__main__":
    sys.exit(main())
