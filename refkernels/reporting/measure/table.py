"""The measurements as a table in CSV, for further analysis."""

from __future__ import annotations

import csv
import io
from typing import Any

from refkernels.reporting.measure.inputs import concerned, input_of
from refkernels.reporting.measure.study import Measurement, Study, known_cause

_COLUMNS = (
    "op", "direction", "dtype", "framework", "version", "device", "case", "output", "status",
    "verdict", "flags", "input", "elements", "concerned", "not_correctly_rounded", "max_ulp",
    "mean_ulp", "error_over_bound", "error_over_plain", "condition_median", "cause",
)  # fmt: skip


def table_of(study: Study) -> str:
    """A line for each measurement, and for each that failed, below the names of the columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for result in (*study.measurements, *study.failures):
        writer.writerow(_row(result, study))
    return text.getvalue()


def _row(m: Measurement, study: Study) -> list[Any]:
    ok = m.status == "ok"
    return [
        m.op, m.direction, m.dtype, m.record["framework"], m.record.get("version"),
        m.device, m.case, m.output, m.status, m.verdict.name if ok else None,
        " ".join(m.flags), input_of(m).name.lower() if ok else None,
        m.tally("elements") if ok else None, concerned(m)[0] if ok else None,
        m.tally("not_correctly_rounded") if ok else None, m.number("ulp", "max"),
        m.number("ulp", "mean"), m.number("bound", "max_ratio"), m.number("plain", "ratio"),
        m.number("condition", "median"), known_cause(study.explanation_of(m)),
    ]  # fmt: skip
