"""sweep.md, sweep.html and their plots, from directory/sweeps.jsonl alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from refkernels.records.files import write_whole
from refkernels.reporting.figures.drawing import Drawn
from refkernels.reporting.reading import Record, read_records
from refkernels.reporting.sweep.plots import draw_sweeps
from refkernels.reporting.sweep.rows import FAULTS, SweepRow, headline, precise, rows
from refkernels.reporting.templating import environment_lines, style, template
from refkernels.reporting.words import vocabulary


def write_sweep_report(directory: Path) -> list[Path]:
    """Write sweep.md, sweep.html and plots/sweep-*.{svg,png}; return their paths, the pages first.

    Raises RecordsError (one sentence, with the line) for records that cannot be read.
    """
    directory = Path(directory)
    records = read_records(directory / "sweeps.jsonl")
    context = _context(records)
    written = [
        write_whole(directory / f"sweep.{kind}", template(f"sweep.{kind}.j2", html).render(context))
        for kind, html in (("md", False), ("html", True))
    ]
    folder = directory / "plots"
    for plot in context["plots"]:
        written.append(write_whole(folder / f"{plot.name}.svg", plot.svg))
        written.append(write_whole(folder / f"{plot.name}.png", plot.png))
    for stale in sorted(folder.glob("sweep-*.*")) if folder.is_dir() else ():
        if stale not in written:
            stale.unlink()
    return written


def _context(records: list[Record]) -> dict[str, Any]:
    sweeps = rows(records)
    return {
        "rows": sweeps,
        "headline": headline(sweeps),
        "plots": _plots(sweeps),
        "faults": FAULTS,
        "limits": sorted(_limits(sweeps)),
        "environments": [
            environment_lines(record) for record in records if record.get("kind") == "environment"
        ],
        "css": style(),
        "precise": precise,
        "meaning_of": vocabulary.meaning_of,
    }


def _plots(sweeps: list[SweepRow]) -> list[Drawn]:
    subjects = sorted({row.subject for row in sweeps if row.swept})
    groups: dict[tuple[str, str], list[SweepRow]] = {}
    for row in sweeps:
        groups.setdefault((row.op, row.dtype), []).append(row)
    drawn = [draw_sweeps(op, dtype, group, subjects) for (op, dtype), group in groups.items()]
    return [plot for plot in drawn if plot is not None]


def _limits(sweeps: list[SweepRow]) -> set[tuple[float, str]]:
    """(declared limit in ulp, its source) of all sweeps."""
    bounds = [row.record.get("bound") or {} for row in sweeps]
    return {
        (float(bound["limit"]), str(bound.get("source") or "no source recorded"))
        for bound in bounds
        if bound.get("limit") is not None
    }
