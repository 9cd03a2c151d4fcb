"""The views of a comparison: the terminal table, Markdown, one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from refkernels.records.files import write_whole
from refkernels.reporting.compare.changes import IN_BOTH, KINDS, Change, RunComparison
from refkernels.reporting.measure.inputs import level_of
from refkernels.reporting.measure.study import Measurement
from refkernels.reporting.templating import style, template
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.numerals import ulps
from refkernels.reporting.words.report import counted, words_of
from refkernels.reporting.words.vocabulary import meaning_of, short_of

WIDTH = 80


def summary(comparison: RunComparison, old: str, new: str, words: Texts) -> str:
    """What changed, in a sentence, and which versions."""
    if not comparison.changes:
        return words("compare:none", same=f"{comparison.counts['same']:,}")
    counts = {
        kind: words["compare:count"].format(
            n=f"{comparison.counts[kind]:,}", kind=words["compare:" + kind]
        )
        for kind in (*KINDS, "same")
        if comparison.counts[kind]
    }
    text = words["compare:summary"].format(
        old=old,
        new=new,
        both=counted(words, "compared", comparison.both),
        counts=words["comma"].join(text for kind, text in counts.items() if kind in IN_BOTH),
        others="".join(
            words["comma"] + text for kind, text in counts.items() if kind not in IN_BOTH
        ),
    )
    versions = [
        words("compare:versions", target=name, old=before or "?", new=now or "?")
        for name, before, now in comparison.versions
    ]
    return words["space"].join([text, *[f"{sentence}{words['stop']}" for sentence in versions]])


def state(measurement: Measurement | None, words: Texts, between: str = "") -> str:
    """`✗ beyond bound, 2.8e8 ulp`: the verdict and the mean error, with `between` instead of the
    comma if given; or the status."""
    if measurement is None:
        return "–"
    lang = words.lang
    if measurement.status != "ok":
        return meaning_of("status", measurement.status, lang)
    level = level_of(measurement)
    mean = measurement.number("ulp", "mean")
    size = (
        "" if mean is None else f"{between or words['comma']}{ulps(mean, measurement.dtype, lang)}"
    )
    return f"{level.glyph} {short_of(level, lang)}{size}"


def place(change: Change) -> str:
    """`layernorm backward float64, dx`."""
    shown = change.shown
    return f"{shown.op} {shown.direction} {shown.dtype}" + (
        f", {change.output}" if change.output else ""
    )


def comparison_table(
    comparison: RunComparison, old: str, new: str, lang: str = "en", most: int | None = 20
) -> RenderableType:
    """The summary and a line for each change, for a rich console: `most` of them, or all."""
    words = words_of(lang)
    parts: list[RenderableType] = [Text(summary(comparison, old, new, words))]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    shown = comparison.changes if most is None else comparison.changes[:most]
    longest = max((len(change.shown.subject) for change in shown), default=0)
    target = min(max(12, longest), 16)  # of 34 columns, which it shares with the output
    heads = (("compare:change", 8), ("target", target), ("compare:output", 34 - target),
             ("compare:old", 16), ("compare:now", 16))  # fmt: skip
    for name, width in heads:
        table.add_column(words[name], width=width, overflow="fold")
    for change in shown:
        before, now = change.example
        style = "bold red" if change.kind in ("new", "broken", "worse") else "default"
        row = (words[f"compare:{change.kind}"], change.shown.subject, place(change),
               state(before, words, "\n"), state(now, words, "\n"))  # fmt: skip
        table.add_row(
            *[Text(cell, style=style if not i else "default") for i, cell in enumerate(row)]
        )
    if shown:
        parts += [Text(), table]
    if more := len(comparison.changes) - len(shown):
        parts.append(Text(words("compare:more", n=f"{more:,}"), style="dim"))
    return Group(*parts)


def comparison_markdown(comparison: RunComparison, old: str, new: str, lang: str = "en") -> str:
    """The comparison as Markdown, to paste into a thread."""
    return template("compare.md.j2", html=False).render(**_context(comparison, old, new, lang, ""))


def write_comparison(
    directory: Path,
    comparison: RunComparison,
    old: str,
    new: str,
    lang: str = "en",
    report: str = "",
) -> list[Path]:
    """Write compare.html and compare.md. `report`: the link from compare.html to the new run's
    page, "" if there is none."""
    page = template("compare.html.j2", html=True).render(
        **_context(comparison, old, new, lang, report)
    )
    return [
        write_whole(directory / "compare.html", page),
        write_whole(directory / "compare.md", comparison_markdown(comparison, old, new, lang)),
    ]


def _context(
    comparison: RunComparison, old: str, new: str, lang: str, report: str
) -> dict[str, Any]:
    words = words_of(lang)
    return {
        "w": words,
        "lang": lang,
        "comparison": comparison,
        "summary": summary(comparison, old, new, words),
        "kinds": [
            (kind, [change for change in comparison.changes if change.kind == kind])
            for kind in KINDS
            if comparison.counts[kind]
        ],
        "report": report,
        "state": state,
        "place": place,
        "counted": counted,
        "css": style(),
    }
