"""A profile as Markdown and as HTML: the heaviest place first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from refkernels.reporting.answer.markdown import grid
from refkernels.reporting.profile.plot import draw
from refkernels.reporting.templating import document, figure_of, sections_of
from refkernels.reporting.words.catalogues import Texts, by_language
from refkernels.reporting.words.escaping import code, escaped
from refkernels.reporting.words.numerals import figure, share

Record = Mapping[str, Any]
_ROWS = 20  # of a table
_LEAST = 0.001  # a share that has a row
_HELPS = 0.01  # a gain that is told


def markdown(profile: Record, lang: str = "en") -> str:
    """The whole page."""
    words = by_language("profile")[lang]
    parts = [f"# {words['title']}", _lead(profile, words), *_remarks(profile, words)]
    for name, where in (("sites", _line), ("modules", _module)):
        parts += [f"## {words[name]}", _table(profile[name], where, words)]
    return "\n\n".join([*parts, f"## {words['read']}", words["how"]]) + "\n"


def html(profile: Record, lang: str = "en") -> str:
    """The page in one self-contained file, with the picture of the errors through the program."""
    words = by_language("profile")[lang]
    title, lead, sections = sections_of(markdown(profile, lang))
    plot = draw(profile, words)
    places = list(sections.items())
    places.insert(2, (plot.title, figure_of(plot)))
    return document(title, lead, dict(places), "profile", lang)


def _lead(profile: Record, words: Texts) -> str:
    first = profile["sites"][0]
    error = words("off", error=figure(profile["error"]), calls=f"{profile['calls']:,}")
    if not profile["error"]:
        return words("exact", calls=f"{profile['calls']:,}")
    heaviest = words["heaviest"].format(
        share=_percent(first["share"]),
        where=_line(first, words) + (f" ({code(first['code'])})" if first["code"] else ""),
        ops=", ".join(code(op) for op in first["ops"][:2]),
        formats=", ".join(first["formats"]),
    )
    parts = [heaviest]
    gain = first["gain"] or 0.0
    tried = [row for row in profile["modules"] if row["gain"] is not None]
    best = max(tried, key=lambda row: row["gain"], default=first)
    if first["gain"] is not None:
        parts.append(words("gain" if gain >= _HELPS else "no_gain", gain=_percent(gain)))
    if (best["gain"] or 0.0) > max(gain, 0.0) + _HELPS:
        named = {"module": code(best["module"]), "gain": _percent(best["gain"])}
        parts.append(words("best", **named))
    return " ".join([*parts, error])


def _remarks(profile: Record, words: Texts) -> list[str]:
    """What the shares leave out, each with its number."""
    found = [words["compiled"]] if profile["compiled"] else []
    if profile["unseen"]:
        found.append(words("unseen", names=", ".join(map(code, profile["unseen"]))))
    if profile["remainder"] > 0.01:
        found.append(words("remainder", share=_percent(min(profile["remainder"], 1.0))))
    for kind, number in (("flipped", "flipped"), ("overflowed", "elements")):
        if rows := profile[kind]:
            places = ", ".join(dict.fromkeys(_line(row, words) for row in rows[:5]))
            total = sum(row[number] for row in rows)
            found.append(words(kind, n=f"{total:,}", where=places))
    return ["\n".join(f"- {line}" for line in found)] if found else []


def _table(rows: list[dict[str, Any]], where: Callable[[Record, Texts], str], words: Texts) -> str:
    shown = [row for row in rows[:_ROWS] if row["share"] >= _LEAST]
    cells = [
        [
            _percent(row["share"]),
            "–" if row["gain"] is None else _percent(max(row["gain"], 0.0)),
            where(row, words),
            ", ".join(code(op) for op in row["ops"][:2]),
            ", ".join(row["formats"]),
            "–" if row["roundings"] is None else figure(row["roundings"]),
        ]
        for row in shown
    ]
    rest = len(rows) - len(shown)
    below = f"\n\n{words('rest', n=f'{rest:,}')}" if rest else ""
    return grid(words["columns"], cells, "--lll-") + below


def _percent(part: float) -> str:
    return share(round(part * 10**6), 10**6)


def _line(row: Record, words: Texts) -> str:
    module = words("in_module", module=code(row["module"])) if row["module"] else ""
    return code(f"{Path(row['file']).name}:{row['line']}") + module


def _module(row: Record, words: Texts) -> str:
    return code(row["module"]) if row["module"] else escaped(words["outside"])
