"""The summary in the terminal: a card for each seat, in one screen of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from refkernels.reporting.measure.headline import headline, scope, settings_told
from refkernels.reporting.measure.study import Study
from refkernels.reporting.measure.symptoms import Card, Symptom, cards
from refkernels.reporting.reading import Record
from refkernels.reporting.words.escaping import clipped
from refkernels.reporting.words.numerals import share
from refkernels.reporting.words.report import listed, words_of
from refkernels.reporting.words.vocabulary import short_of

WIDTH = 80
_INDENT = "   "
_AROUND = 6  # lines: the headline, where to look, the prompt


def terminal_table(
    records: list[Record],
    lang: str = "en",
    *,
    height: int = 24,
    everything: bool = False,
) -> RenderableType:
    """The headline and a card for each seat, for a rich console: as many lines as a screen of that
    height has room for, or all with `everything`. Raises ValueError for an unknown language."""
    words = words_of(lang)
    study = Study.of(records)
    told = headline(study, words)
    parts: list[RenderableType] = [Text(words["space"].join(told if everything else told[:2]))]
    found = cards(study)
    room = max(1, (height - _AROUND) // max(1, len(found)) - 1)
    for card in found:
        parts += _card(card, words, lang, None if everything else room)
    if not everything:
        parts += [Text(sentence) for sentence in settings_told(study, words)]
    parts += [Text(sentence) for sentence in scope(study, words)]
    table = Table.grid()
    table.add_column(max_width=WIDTH)
    for part in parts:
        table.add_row(part)
    return Group(table)


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


def _card(card: Card, words: Any, lang: str, room: int | None) -> list[RenderableType]:
    """The seat in a line, then its symptoms in as many lines as there is room for, or whole where
    all are asked for."""
    head = Text(clipped(card.subject, 40), style="bold")
    fine = words["seat_line"].format(share=share(card.fine, card.measurements))
    head.append(f"{words['colon']}{fine}", style="default")
    lines: list[RenderableType] = [head]
    if room is None:
        for one in (*card.lines, *card.edges):
            lines += _whole(one, words, lang)
        return lines
    shown = 0
    for one in card.first:
        if len(lines) > room:
            break
        lines += _lines(one, words, lang, room + 1 - len(lines))
        shown += 1
    more = len(card.lines) - shown
    left = [words["line_more"].format(n=more)] if more > 0 else []
    left += [words["line_edge"].format(n=len(card.edges))] if card.edges else []
    if not card.lines:
        lines.append(Text(f"  {words['card_fine']}"))
    if left:
        head.append(words["comma"] + words["comma"].join(left), style="dim")
    for line in lines:
        if isinstance(line, Text):
            line.truncate(WIDTH, overflow="ellipsis")
    return lines


def _lines(one: Symptom, words: Any, lang: str, room: int) -> list[RenderableType]:
    """What differs first: it is the end that a narrow terminal cuts off. A cause that does not fit
    goes into lines of its own, if there is room."""
    line = Text(f" {one.verdict.glyph} ", style=one.verdict.colour)
    line.append(f"{listed(words, one.ops[:2])}{'…' if one.ops[2:] else ''}", style="bold")
    if one.directions == ["backward"]:
        line.append(" backward", style="bold")
    line.append(f" {'/'.join(one.dtypes)}", style="bold")
    told = one.because(words, lang) if one.cause else ""
    size = one.size(words, "short:")
    parts = [part for part in (size, told) if part]
    whole = line + Text(words["colon"] + words["comma"].join(parts), style="default")
    if not told or whole.cell_len <= WIDTH or room < 2:
        return [whole]
    rows = Text(told, style="dim").wrap(Console(width=WIDTH), WIDTH - len(_INDENT))
    if len(rows) > room - 1:
        rest = " ".join(row.plain.strip() for row in rows[room - 2 :])
        rows[room - 2] = Text(rest, style="dim")
    short = line + Text(words["colon"] + size, style="default") if size else line
    return [short, *(Text(_INDENT) + row for row in rows[: room - 1])]


def _whole(one: Symptom, words: Any, lang: str) -> list[RenderableType]:
    line = Text(f" {one.verdict.glyph} {short_of(one.verdict, lang)}  ", style=one.verdict.colour)
    line.append(one.what(words, 99), style="bold")
    line.append(f" [{words['kind:' + one.kind]}]{words['colon']}{one.size(words)}", style="default")
    more = [one.because(words, lang), one.shown(words), words["on"].format(case=one.example.case)]
    return [line, *[Text(f"   {clipped(text, 300)}", style="dim") for text in more if text]]
