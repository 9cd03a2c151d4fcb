"""Writes the tables of docs/training-facts.md from the kept answers.

python tools/write_training_facts.py [RESULTS]

RESULTS is a folder with the training_facts.json that `benchmarks/training_facts.py` writes.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from refkernels.records.files import write_whole

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "training-facts.md"
KEPT = ROOT / "benchmarks" / "results" / "cpu-x86_64-linux"
TITLES = {
    "0": "What surprised most",
    "1": "Optimizers",
    "2": "Clipping",
    "3": "Losses",
    "4": "Norms, attention, reductions",
    "5": "Learning rates",
}
MARKED = re.compile(r"(<!-- facts: .*? -->\n).*?(<!-- end of facts -->)", re.DOTALL)


def page(text: str, records: list[dict[str, Any]]) -> str:
    """The page with the tables of these records between its marks."""
    assert MARKED.search(text)
    return MARKED.sub(lambda marks: marks[1] + "\n".join(tables(records)) + "\n" + marks[2], text)


def tables(records: list[dict[str, Any]]) -> Iterator[str]:
    """The counts, and a table for each section of the survey."""
    counts = Counter(record["verdict"] for record in records)
    kinds = {"reproduced": "reproduced", "differs": "different", "open": "open"}
    parts = ", ".join(f"{counts[kind]} {word}" for kind, word in kinds.items() if counts[kind])
    yield f"{len(records)} claims: {parts}."
    for section, title in TITLES.items():
        of_section = [r for r in records if r["section"].partition(".")[0] == section]
        if of_section:
            yield from ("", f"### {title}", "")
            yield from ("| | claim | the survey | seen | |", "|---|---|---|---|---|")
            yield from map(_row, of_section)


def _row(record: dict[str, Any]) -> str:
    verdict = record["verdict"]
    if record["because"]:
        reason = record["because"]
        verdict = reason if reason.startswith("withdrawn") else f"differs: {reason}"
    cells = (record["framework"], record["claim"], record["figure"], record["ours"], verdict)
    return "| " + " | ".join(str(cell).replace("|", r"\|") for cell in cells) + " |"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else KEPT
    records = json.loads((folder / "training_facts.json").read_text(encoding="utf-8"))["records"]
    write_whole(PAGE, page(PAGE.read_text(encoding="utf-8"), records))


if __name__ == "__main__":
    main()
