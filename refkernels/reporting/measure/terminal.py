"""The summary in the terminal: a card for each target, in one screen of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from refkernels.reporting.measure.headline import (
    absent,
    headline,
    invariance_sentences,
    scope,
    settings_sentences,
    summary,
)
from refkernels.reporting.measure.study import Study
from refkernels.reporting.measure.symptoms import Card, Symptom, cards, cause_text
from refkernels.reporting.reading import Record
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.escaping import clipped
from refkernels.reporting.words.numerals import share
from refkernels.reporting.words.report import some_of, words_of
from refkernels.reporting.words.vocabulary import short_of

WIDTH = 80
_LONGEST = 60  # characters of the name of a target
_INDENT = "   "
_AROUND = 3  # lines: where to look, and the prompt


def terminal_table(
    records: list[Record],
    lang: str = "en",
    *,
    height: int = 24,
    everything: bool = False,
) -> RenderableType:
    """The headline and a card for each target, for a rich console: as many lines as fit on a screen
    of that height, or all with `everything`. Formulas composed of a framework's ops share a line.
    Raises ValueError for an unknown language."""
    words = words_of(lang)
    study = Study.of(records)
    head = Text(words["space"].join((headline if everything else summary)(study, words)))
    below: list[str] = []
    if not everything:
        # Most frameworks' bits depend on something; that a kernel's do is news to its author.
        below += invariance_sentences(study, words, of_kernels=True)
        below += settings_sentences(study, words)
    foot = [Text(sentence) for sentence in (*below, *absent(study, words), *scope(study, words))]
    all_cards = cards(study)
    if everything:
        body = [line for card in all_cards for line in _whole_card(card, words)]
    else:
        kernels = [card for card in all_cards if not card.formula]
        formulas = [card for card in all_cards if card.formula]
        foot = [*_formulas(formulas, words), *foot]
        around = sum(len(_rows(part)) for part in (head, *foot))
        room = max(0, height - _AROUND - around)
        per_card, spare = divmod(room, max(1, len(kernels)))
        body = []
        for place, card in enumerate(kernels):
            body += _card(card, words, max(2, per_card + (place < spare)))
    table = Table.grid()
    table.add_column(max_width=WIDTH)
    for part in (head, *body, *foot):
        table.add_row(part)
    return Group(table)


def _formulas(all_cards: list[Card], words: Texts) -> list[Text]:
    """The targets that are formulas of ours, in one line."""
    if not all_cards:
        return []
    names = [clipped(card.subject, _LONGEST) for card in all_cards]
    line = Text(words("formula_targets", names=words["list"].join(names)), style="dim")
    return [line]


def _rows(text: Text, indent: int = 0) -> list[Text]:
    """The text, wrapped into lines of the screen."""
    return list(text.wrap(Console(width=WIDTH), WIDTH - indent))


def environment_table(lines: Iterable[Any]) -> RenderableType:
    """What can be measured here: one line per interpreter (name, version, python, state, fix)."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("framework", "version", "python", "from", "state", "where, or the fix"):
        table.add_column(name, overflow="fold")
    styles = {"ready": "cyan", "not installed": "yellow", "broken": "bold red"}
    for line in lines:
        state = Text(line.state, style=styles.get(line.state, ""))
        table.add_row(
            Text(line.name), Text(line.version), Text(line.python), Text(line.source), state,
            Text(line.fix or line.path),
        )  # fmt: skip
    return table


def _card(card: Card, words: Texts, room: int) -> list[RenderableType]:
    """The target, then its symptoms in the lines that its head leaves, at least one symptom."""
    lines: list[RenderableType] = [
        row for text in card.head(words) for row in _rows(Text(f"  {text}"), len(_INDENT))
    ]
    left = room - len(_rows(_head(card, words, len(card.lines), len(card.edges)))) - len(lines)
    shown = 0
    for symptom in card.first:
        if shown and left <= 0:
            break
        rows = _lines(symptom, words, left)
        left -= len(rows)
        lines += rows
        shown += 1
    return [_head(card, words, len(card.lines) - shown, len(card.edges)), *lines]


def _head(card: Card, words: Texts, further: int = 0, edges: int = 0) -> Text:
    line = Text(clipped(card.subject, _LONGEST), style="bold")
    fine = words("target_line", share=share(card.fine, card.asked))
    line.append(f"{words['colon']}{fine}", style="default")
    for key, number in (("line_more", further), ("line_edge", edges)):
        if number:
            line.append(words["comma"] + words(key, n=number), style="dim")
    return line


def _whole_card(card: Card, words: Texts) -> list[RenderableType]:
    """The target in a line, then all its symptoms."""
    lines = [_head(card, words), *(Text(f"  {text}") for text in card.head(words))]
    return [*lines, *(row for s in (*card.lines, *card.edges) for row in _whole(s, words))]


def _lines(symptom: Symptom, words: Texts, room: int) -> list[RenderableType]:
    """The symptom and its cause in at most `room` lines, or in one. The cause has the first form
    that fits (with its signature, alone, or as an identifier), beside the symptom or below it. No
    sentence is cut: what does not fit is left out."""
    size = symptom.size(words, "short:")
    names = [_name(symptom, words, "/".join(symptom.dtypes))]
    if len(symptom.dtypes) > 1:
        names.append(_name(symptom, words, f"{symptom.dtypes[0]} +{len(symptom.dtypes) - 1}"))
    reasons = [symptom.because(words), cause_text(symptom.explanation, words)]
    reasons.append(f"{words['cause']}{words['colon']}{symptom.cause}")
    for reason in filter(None, reasons if symptom.cause else []):
        for name in names:
            line = name + _after(
                words, words["comma"].join(part for part in (size, reason) if part)
            )
            if line.cell_len <= WIDTH:
                return [line]
        rows = _rows(Text(reason, style="dim"), len(_INDENT))
        if len(rows) < room:
            return [_short(names, size, words), *(Text(_INDENT) + row for row in rows)]
    return [_short(names, size, words)]


def _short(names: list[Text], size: str, words: Texts) -> Text:
    """The symptom without its cause, in the first form that fits in a line."""
    lines = [*(name + _after(words, size) if size else name for name in names), names[-1]]
    line = next((line for line in lines if line.cell_len <= WIDTH), names[-1])
    line.truncate(WIDTH, overflow="ellipsis")  # names from records can be of any length
    return line


def _name(symptom: Symptom, words: Texts, dtypes: str) -> Text:
    line = Text(f" {symptom.verdict.glyph} ", style=symptom.verdict.colour)
    line.append(some_of(words, symptom.ops, 3), style="bold")
    if symptom.directions == ["backward"]:
        line.append(" backward", style="bold")
    return line.append(f" {dtypes}", style="bold")


def _after(words: Texts, text: str) -> Text:
    return Text(words["colon"] + text, style="default")


def _whole(symptom: Symptom, words: Texts) -> list[RenderableType]:
    line = Text(
        f" {symptom.verdict.glyph} {short_of(symptom.verdict, words.lang)}  ",
        style=symptom.verdict.colour,
    )
    line.append(symptom.what(words, 99), style="bold")
    line.append(
        f" [{words['kind:' + symptom.kind]}]{words['colon']}{symptom.size(words)}", style="default"
    )
    more = [
        symptom.because(words),
        symptom.shown(words),
        words("on", case=symptom.example.case),
    ]
    return [line, *[Text(f"   {clipped(text, 300)}", style="dim") for text in more if text]]
