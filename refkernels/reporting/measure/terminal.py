"""The summary in the terminal: a card for each seat, in one screen of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from refkernels.reporting.measure.headline import headline, scope, settings_sentences
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
    sentences = headline(study, words)
    parts: list[RenderableType] = [
        Text(words["space"].join(sentences if everything else sentences[:2]))
    ]
    all_cards = cards(study)
    room = max(1, (height - _AROUND) // max(1, len(all_cards)) - 1)
    for card in all_cards:
        parts += _card(card, words, lang, None if everything else room)
    if not everything:
        parts += [Text(sentence) for sentence in settings_sentences(study, words)]
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
    """The seat in a line, then its symptoms in as many lines as there is room for, or in full if
    all are wanted."""
    head = Text(clipped(card.subject, 40), style="bold")
    fine = words["seat_line"].format(share=share(card.fine, card.measurements))
    head.append(f"{words['colon']}{fine}", style="default")
    lines: list[RenderableType] = [head]
    if room is None:
        for symptom in (*card.lines, *card.edges):
            lines += _whole(symptom, words, lang)
        return lines
    shown = 0
    for symptom in card.first:
        if len(lines) > room:
            break
        lines += _lines(symptom, words, lang, room + 1 - len(lines))
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


def _lines(symptom: Symptom, words: Any, lang: str, room: int) -> list[RenderableType]:
    """What differs comes first, because a narrow terminal cuts off the end. A cause that does not
    fit gets lines of its own, if there is room."""
    reason = symptom.because(words, lang) if symptom.cause else ""
    size = symptom.size(words, "short:")
    parts = [part for part in (size, reason) if part]
    line = _name(symptom, words, "/".join(symptom.dtypes))
    whole = line + _after(words, words["comma"].join(parts))
    if whole.cell_len > WIDTH and len(symptom.dtypes) > 1 and (not reason or room < 2):
        line = _name(symptom, words, f"{symptom.dtypes[0]} +{len(symptom.dtypes) - 1}")
        whole = line + _after(words, words["comma"].join(parts))
    if not reason or whole.cell_len <= WIDTH or room < 2:
        return [whole]
    rows = Text(reason, style="dim").wrap(Console(width=WIDTH), WIDTH - len(_INDENT))
    if len(rows) > room - 1:
        rest = " ".join(row.plain.strip() for row in rows[room - 2 :])
        rows[room - 2] = Text(rest, style="dim")
    short = line + _after(words, size) if size else line
    return [short, *(Text(_INDENT) + row for row in rows[: room - 1])]


def _name(symptom: Symptom, words: Any, dtypes: str) -> Text:
    line = Text(f" {symptom.verdict.glyph} ", style=symptom.verdict.colour)
    line.append(f"{listed(words, symptom.ops[:2])}{'…' if symptom.ops[2:] else ''}", style="bold")
    if symptom.directions == ["backward"]:
        line.append(" backward", style="bold")
    return line.append(f" {dtypes}", style="bold")


def _after(words: Any, text: str) -> Text:
    return Text(words["colon"] + text, style="default")


def _whole(symptom: Symptom, words: Any, lang: str) -> list[RenderableType]:
    line = Text(
        f" {symptom.verdict.glyph} {short_of(symptom.verdict, lang)}  ",
        style=symptom.verdict.colour,
    )
    line.append(symptom.what(words, 99), style="bold")
    line.append(
        f" [{words['kind:' + symptom.kind]}]{words['colon']}{symptom.size(words)}", style="default"
    )
    more = [
        symptom.because(words, lang),
        symptom.shown(words),
        words["on"].format(case=symptom.example.case),
    ]
    return [line, *[Text(f"   {clipped(text, 300)}", style="dim") for text in more if text]]
