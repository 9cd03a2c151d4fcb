"""What is kept of a run's records: what the tables are made of, and the example of each finding.

    python benchmarks/kept_records.py FOLDER...      FOLDER/records.jsonl becomes records.jsonl.gz

A whole run is 75 MB. Left out are the worst elements that no page shows, distributions, digests,
conditions and times; counts of 0; explanations, and how far frameworks are apart but for the
founding threads.
"""

import sys
from collections.abc import Container
from pathlib import Path
from typing import Any

from refkernels.records import codec
from refkernels.records.files import compress
from refkernels.reporting.measure.findings import findings
from refkernels.reporting.measure.study import Study
from refkernels.reporting.reading import read_records

Record = dict[str, Any]
THREADS = ("/seed_", "/cosine_schedule", "/affine_gradients")  # in the names of their cases
LEFT_OUT = ("digest", "seconds", "condition", "oracle", "plain", "error")
FIGURES = {"ulp": ("max",), "bound": ("max_ratio",), "worst": ("ulp_error", "error_over_bound")}


def of_a_thread(record: Record) -> bool:
    """Whether its case is one of the threads that the project began with."""
    case = record["case"]["name"] if isinstance(record["case"], dict) else record["case"]
    return any(name in case for name in THREADS)


def summary(record: Record, examples: Container[int]) -> Record | None:
    """What is kept of a record; None: nothing."""
    if record["kind"] in ("explanation", "agreement"):
        return record if of_a_thread(record) and record["kind"] == "agreement" else None
    if record["kind"] != "measurement" or of_a_thread(record):
        return record
    kept = {key: value for key, value in record.items() if key not in LEFT_OUT}
    if counts := record.get("counts"):
        kept["counts"] = {name: count for name, count in counts.items() if count}
    for group, names in FIGURES.items():
        if record.get(group) and not (group == "worst" and id(record) in examples):
            kept[group] = {name: record[group].get(name) for name in names}
    return kept


def keep(folder: Path) -> None:
    """Replaces the records of a finished run by what is kept of them."""
    path = folder / "records.jsonl"
    records = read_records(path)
    examples = {id(finding.example.record) for finding in findings(Study.of(records))}
    summaries = (summary(record, examples) for record in records)
    path.write_text("".join(codec.dumps(kept) + "\n" for kept in summaries if kept), "utf-8")
    compress(path)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        keep(Path(name))
