"""The views of a comparison: the terminal table, Markdown, one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from refkernels.records.files import write_whole
from refkernels.reporting.compare.changes import IN_BOTH, KINDS, Change, RunComparison
from refkernels.reporting.measure.inputs import level_of
from refkernels.reporting.measure.pages import TEMPLATES, template
from refkernels.reporting.measure.study import Measurement
from refkernels.reporting.words.numerals import ulps
from refkernels.reporting.words.report import counted, words_of
from refkernels.reporting.words.vocabulary import short_of

WIDTH = 80


def summary(found: RunComparison, old: str, new: str, words: Mapping[str, str]) -> str:
    """What changed, in a sentence."""
    if not found.changes:
        return words["compare:none"].format(same=f"{found.counts['same']:,}")
    told = {
        kind: f"{found.counts[kind]:,} {words['compare:' + kind]}"
        for kind in (*KINDS, "same")
        if found.counts[kind]
    }
    text = words["compare:summary"].format(
        old=old,
        new=new,
        both=f"{found.both:,}",
        told=words["comma"].join(text for kind, text in told.items() if kind in IN_BOTH),
        others="".join(words["comma"] + text for kind, text in told.items() if kind not in IN_BOTH),
    )
    versions = [
        words["compare:versions"].format(seat=name, old=before or "?", new=now or "?")
        for name, before, now in found.versions
    ]
    return words["space"].join([text, *[f"{one}{words['stop']}" for one in versions]])


def state(one: Measurement | None, words: Mapping[str, str]) -> str:
    """`✗ beyond bound, 2.8e8 ulp`: the verdict and the mean error, or the status."""
    if one is None:
        return "–"
    lang = words["lang"]
    if one.status != "ok":
        return one.status.replace("_", " ")
    level = level_of(one)
    mean = one.number("ulp", "mean")
    size = "" if mean is None else f"{words['comma']}{ulps(mean, one.dtype, lang)}"
    return f"{level.glyph} {short_of(level, lang)}{size}"


def place(one: Change) -> str:
    """`layernorm backward float64, dx`."""
    it = one.one
    return f"{it.op} {it.direction} {it.dtype}" + (f", {one.output}" if one.output else "")


def comparison_table(
    found: RunComparison, old: str, new: str, lang: str = "en", most: int | None = 20
) -> RenderableType:
    """The summary and a line for each change, for a rich console: `most` of them, or all."""
    words = words_of(lang)
    parts: list[RenderableType] = [Text(summary(found, old, new, words))]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    heads = (("compare:change", 8), ("seat", 12), ("compare:output", 22), ("compare:old", 15),
             ("compare:now", 15))  # fmt: skip
    for name, width in heads:
        table.add_column(words[name], width=width, overflow="fold")
    shown = found.changes if most is None else found.changes[:most]
    for one in shown:
        before, now = one.example
        style = "bold red" if one.kind in ("new", "broken", "worse") else "default"
        row = (words[f"compare:{one.kind}"], one.one.subject, place(one), state(before, words),
               state(now, words))  # fmt: skip
        table.add_row(
            *[Text(cell, style=style if not i else "default") for i, cell in enumerate(row)]
        )
    if shown:
        parts += [Text(), table]
    if more := len(found.changes) - len(shown):
        parts.append(Text(words["compare:more"].format(n=f"{more:,}"), style="dim"))
    return Group(*parts)


def comparison_markdown(found: RunComparison, old: str, new: str, lang: str = "en") -> str:
    """The comparison for a thread."""
    return template("compare.md.j2", html=False).render(**_context(found, old, new, lang, ""))


def write_comparison(
    directory: Path, found: RunComparison, old: str, new: str, lang: str = "en", report: str = ""
) -> list[Path]:
    """Write compare.html and compare.md. `report`: where the new run's page is, as compare.html
    links to it, "" where it has none."""
    page = template("compare.html.j2", html=True).render(**_context(found, old, new, lang, report))
    return [
        write_whole(directory / "compare.html", page),
        write_whole(directory / "compare.md", comparison_markdown(found, old, new, lang)),
    ]


def _context(found: RunComparison, old: str, new: str, lang: str, report: str) -> dict[str, Any]:
    words = words_of(lang)
    return {
        "w": words,
        "lang": lang,
        "found": found,
        "summary": summary(found, old, new, words),
        "kinds": [
            (kind, [one for one in found.changes if one.kind == kind])
            for kind in KINDS
            if found.counts[kind]
        ],
        "report": report,
        "state": state,
        "place": place,
        "counted": counted,
        "css": Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
    }
