"""Writes the report with its table in CSV, and removes the plots and scripts of an earlier one."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

from refkernels.records.files import stored, write_whole
from refkernels.records.words import LEVELS
from refkernels.reporting.measure.ids import ENDINGS
from refkernels.reporting.measure.inputs import concerned, input_of
from refkernels.reporting.measure.pages import Report, Starmap
from refkernels.reporting.measure.study import Measurement, Study, known_cause
from refkernels.reporting.reading import Record, read_records

SCRIPTS = "scripts.js"  # all scripts, by the ids of their findings


def write_report(
    directory: Path,
    lang: str = "en",
    starmap: Starmap = itertools.starmap,
    records: list[Record] | None = None,
) -> list[Path]:
    """Write report.md, report.html, figures.csv, plots/*.{svg,png} and scripts/*.{py,js}, from
    directory/records.jsonl. `starmap` draws the plots and may use several processes. `records`: the
    records of the file, if they have been read already.

    Returns the files written, the two pages first. The same records give the same bytes. Plots and
    scripts of an earlier report that this one does not have are removed.
    Raises ValueError for an unknown language, RecordsError (one sentence, with the line) for
    records that cannot be read.
    """
    directory = Path(directory)
    path = directory / "records.jsonl"
    records = read_records(path) if records is None else records
    report = Report.of(records, lang, starmap=starmap, records_file=stored(path).name)
    written = [
        write_whole(directory / "report.md", report.markdown()),
        write_whole(directory / "report.html", report.html()),
        write_whole(directory / "figures.csv", table_of(report.study)),
    ]
    folder = directory / "plots"
    for plot in report.plots:
        written.append(write_whole(folder / f"{plot.name}.svg", plot.svg))
        written.append(write_whole(folder / f"{plot.name}.png", plot.png))
    scripts = directory / "scripts"
    for name, text in report.scripts.items():
        written.append(write_whole(scripts / f"{name}.py", text))
    if report.scripts:  # one file that the page loads for "copy as Markdown"
        text = f"refkernelsScripts = {json.dumps(report.scripts)};\n"
        written.append(write_whole(scripts / SCRIPTS, text))
    else:
        (scripts / SCRIPTS).unlink(missing_ok=True)
    for stale in sorted(scripts.glob("*.py")) if scripts.is_dir() else ():
        if stale.stem.endswith((*ENDINGS, *LEVELS)) and stale not in written:
            stale.unlink()
    for stale in sorted(folder.glob("*.*")) if folder.is_dir() else ():
        is_ours = stale.name.startswith(("growth-", "spread-", "error-over-bound"))
        if is_ours and stale not in written:
            stale.unlink()
    return written


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
