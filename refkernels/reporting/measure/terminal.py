"""The table in the terminal: at most 100 columns, verdicts by glyph, word and colour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from refkernels.reporting.measure.headline import Headline, headline
from refkernels.reporting.measure.scores import Block, Row, blocks
from refkernels.reporting.measure.study import Study
from refkernels.reporting.reading import Record
from refkernels.reporting.words.escaping import clipped
from refkernels.reporting.words.numerals import ratio, share, ulp_figure
from refkernels.reporting.words.vocabulary import UNUSUAL, VERDICTS

WIDTH = 100
COLUMNS = 5  # subjects side by side; more go into further tables
_FIRST, _CELL = 9, 16


def terminal_table(records: list[Record]) -> RenderableType:
    """Summary, score board (op and pass, format x framework) and legend, for a rich console."""
    study = Study.of(records)
    summary = headline(study)
    parts: list[RenderableType] = [_summary(summary), Text()]
    board = blocks(study)
    for start in range(0, len(study.subjects) if board else 0, COLUMNS):
        parts += [_board(board, study.subjects[start : start + COLUMNS]), Text()]
    if study.measurements:
        parts.append(_legend())
    return Group(*parts)


def environment_table(lines: Iterable[Any]) -> RenderableType:
    """What can be measured here: one line per interpreter (name, version, python, state, cure)."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("framework", "version", "python", "from", "state", "where, or the cure"):
        table.add_column(name, overflow="fold")
    styles = {"ready": "cyan", "not installed": "yellow", "broken": "bold red"}
    for line in lines:
        state = Text(line.state, style=styles.get(line.state, ""))
        table.add_row(
            Text(line.name), Text(line.version), Text(line.python), Text(line.source), state,
            Text(line.cure or line.path),
        )  # fmt: skip
    return table


def _summary(summary: Headline) -> RenderableType:
    lines = [Text(" ".join(summary.sentences))]
    for point in summary.points:
        line = Text(f" {point.verdict.glyph} ", style=point.verdict.colour)
        line.append(f"{clipped(point.subject, 40)}, {point.what}: ", style="bold")
        line.append(point.text, style="default")
        lines.append(line)
    if summary.further > 0:
        lines.append(Text(f"   and {summary.further:,} more in the report", style="dim"))
    table = Table.grid()
    table.add_column(max_width=WIDTH)
    for line in lines:
        table.add_row(line)
    return table


def _board(board: list[Block], subjects: list[str]) -> RenderableType:
    table = Table(
        box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False,
    )  # fmt: skip
    table.add_column("", width=_FIRST, no_wrap=True)
    for subject in subjects:
        table.add_column(Text(clipped(subject, 2 * _CELL)), width=_CELL, overflow="fold")
    for block in board:
        rows = [row for row in block.rows if set(subjects) & {*row.scores, *row.failures}]
        if rows:
            name = Text(clipped(block.op, _FIRST), style="bold")
            table.add_row(name, Text(block.direction, style="bold"))
            for row in rows:
                table.add_row(Text(clipped(row.dtype, 8)), *[_cell(row, one) for one in subjects])
            table.add_row()
    return table


def _cell(row: Row, subject: str) -> Text:
    score = row.scores.get(subject)
    if score is None:
        statuses = sorted({one.status for one in row.failures.get(subject, [])})
        return Text(", ".join(statuses).replace("_", " "), style="dim")
    text = Text(f"{score.verdict.glyph} {score.verdict.short}", style=score.verdict.colour)
    correct = share(score.correct, score.compared).replace(" ", "")
    # Beside a worse verdict the mark would only say less.
    unusual = score.unusual and score.verdict.rank > UNUSUAL.rank
    room = _CELL - len(text.plain) - 2 * unusual
    if len(correct) < room:
        text.append(f" {correct}", style="default")
    if unusual:
        text.append(f" {UNUSUAL.glyph}", style=UNUSUAL.colour)
    text.append(f"\n{ulp_figure(score.ulp_max, row.dtype)} · {ratio(score.bound)}", style="default")
    return text


def _legend() -> Text:
    text = Text("In each cell: the worst verdict, the share of elements correctly rounded (where ")
    text.append("there is room);\nbelow it the largest error in ulp · the largest error / bound. ")
    text.append("No digit: none is right there.\n")
    for verdict in VERDICTS:
        text.append(f"{verdict.glyph} {verdict.short}", style=verdict.colour)
        text.append("  ")
    text.append("\nWithin the bound (<= 1) is rounding, however many ulp that is.")
    return text
