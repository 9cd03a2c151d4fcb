"""The table of sweeps in the terminal, at most 100 columns wide."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from refkernels.reporting.reading import Record
from refkernels.reporting.sweep.rows import SweepRow, headline, rows
from refkernels.reporting.words.escaping import clipped

_SUBJECT = 16


def sweep_table(records: list[Record]) -> RenderableType:
    """A headline, one line per sweep, and below them the faults of each."""
    sweeps = rows(records)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("op", max_width=10, overflow="fold")
    table.add_column("framework", max_width=_SUBJECT, overflow="fold")
    table.add_column("format", no_wrap=True)
    table.add_column("inputs tried", justify="right", no_wrap=True)
    table.add_column("max ulp", justify="right", no_wrap=True)
    table.add_column("at", overflow="fold", min_width=10)
    table.add_column("not correctly\nrounded", justify="right", no_wrap=True)
    notes: list[Text] = []
    for row in sweeps:
        style = row.verdict.colour if row.swept else "dim"
        name = Text(clipped(row.subject.partition("+")[0], _SUBJECT), style=style)
        if not row.swept:
            status = row.status.replace("_", " ")
            table.add_row(Text(row.op), name, row.dtype, Text(status, style="dim"))
            notes.append(_note(row, row.reason))
            continue
        table.add_row(
            Text(row.op), name, row.dtype, f"{row.counts['inputs']:,}", row.largest,
            str(row.ulp.get("input", {}).get("hex", "")), row.wrong,
        )  # fmt: skip
        if len(row.takes) > 1 and row.ulp:
            notes.append(_note(row, _worst_pair(row)))
        notes += [_note(row, line) for line in _faults(row)]
    return Group(Text(headline(sweeps)), Text(), table, *([Text()] if notes else []), *notes)


def _worst_pair(row: SweepRow) -> str:
    inputs, answer = row.ulp["input"]["decimal"], row.ulp["got"]["decimal"]
    return f"worst at {', '.join(row.takes)} = {inputs}: got {answer}, exactly {row.ulp['exact']}"


def _faults(row: SweepRow) -> list[str]:
    lines = []
    for _, words, number, first in row.faults:
        place = ""
        if where := first.get("input", {}):
            place = f", first at {where['hex']} = {where['decimal']}"
        answer = f" (got {first['got']['decimal']})" if where else ""
        lines.append(f"{number:,} {words}{place}{answer}")
    if row.reason:
        lines.append(row.reason)
    return lines


def _note(row: SweepRow, text: str) -> Text:
    style = row.verdict.colour if row.swept else "dim"
    line = Text(f"{row.verdict.glyph} " if row.swept else "– ", style=style)
    line.append(f"{row.op} {clipped(row.subject, 22)} {row.dtype}: ", style="bold")
    line.append(text)
    return line
