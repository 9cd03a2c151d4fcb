"""Writes the report, and removes the plots and scripts of an earlier one."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from refkernels.records.files import stored, write_whole
from refkernels.records.words import LEVELS
from refkernels.reporting.measure.ids import ENDINGS
from refkernels.reporting.measure.pages import Report, Starmap
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
        write_whole(directory / "figures.csv", report.table()),
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
