"""The two pages: what a template may see, and how the templates are filled."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from refkernels.reporting.answer.facts import advice
from refkernels.reporting.figures.drawing import Drawn
from refkernels.reporting.measure.certainty import TIERS, certainties
from refkernels.reporting.measure.comparisons import agreements, alike_by_case, invariances
from refkernels.reporting.measure.findings import Finding, findings, point_text, unrun
from refkernels.reporting.measure.headline import headline, scope
from refkernels.reporting.measure.inputs import (
    Input,
    concerned,
    input_of,
    short_number,
    shown_inputs,
)
from refkernels.reporting.measure.matrix import matrix
from refkernels.reporting.measure.plots import draw_bounds, draw_growth, draw_spread
from refkernels.reporting.measure.scores import blocks
from refkernels.reporting.measure.seeds import seeds, sentences
from refkernels.reporting.measure.series import growth_plots, safe_name, spreads
from refkernels.reporting.measure.study import Measurement, Study, as_number, known_cause
from refkernels.reporting.measure.symptoms import cards, cause_text
from refkernels.reporting.reading import Record
from refkernels.reporting.words import escaping, numerals, vocabulary
from refkernels.reporting.words.report import counted, words_of

_LONGEST_SCRIPT = 3000  # characters in the page; a longer one lies beside it
_MOST_IN_FULL = 150  # findings of a small run
TEMPLATES = Path(__file__).parent.parent / "templates"
_CSV = (
    "op", "direction", "dtype", "framework", "version", "device", "case", "output", "status",
    "verdict", "flags", "input", "elements", "concerned", "not_correctly_rounded", "max_ulp",
    "mean_ulp", "error_over_bound", "error_over_plain", "condition_median", "cause",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Report:
    """All views of one study, in a language. Raises ValueError for one that is not there."""

    study: Study
    lang: str = "en"

    @classmethod
    def of(cls, records: list[Record], lang: str = "en") -> Report:
        """The report of some records."""
        words_of(lang)
        return cls(Study.of(records), lang)

    @cached_property
    def bounds_plot(self) -> Drawn | None:
        """Error / bound of everything."""
        return draw_bounds(self._blocks, self.study.subjects)

    @cached_property
    def growth(self) -> list[Drawn]:
        """How the error grows."""
        drawn = [draw_growth(one, self.study.subjects) for one in growth_plots(self.study)]
        return [one for one in drawn if one is not None]

    @cached_property
    def spread(self) -> list[Drawn]:
        """How the errors are spread."""
        some = spreads(self.study)
        drawn = [draw_spread(op, panels, self.study.subjects) for op, panels in some.items()]
        return [one for one in drawn if one is not None]

    @property
    def plots(self) -> list[Drawn]:
        """Every plot, in the order of the page."""
        first = [self.bounds_plot] if self.bounds_plot is not None else []
        return [*first, *self.growth, *self.spread]

    def html(self) -> str:
        """The page; plots and figures to download lie beside it."""
        return slim(_environment(html=True).get_template("report.html.j2").render(**self._context))

    def markdown(self) -> str:
        """The short version for an issue thread."""
        return _environment(html=False).get_template("report.md.j2").render(**self._context)

    @property
    def scripts(self) -> dict[str, str]:
        """The script of each finding that has one, by its id."""
        return {one.id: one.script for one in self._findings if one.script}

    def table(self) -> str:
        """Every measurement as a line of CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_CSV)
        for one in (*self.study.measurements, *self.study.failures):
            writer.writerow(_row(one, self.study))
        return text.getvalue()

    @cached_property
    def _findings(self) -> list[Finding]:
        return findings(self.study)

    @cached_property
    def _in_full(self) -> set[str]:
        """Findings that get more than a row: all of a small run; of a large one what is explained
        and what stands on a card unfolded."""
        if len(self._findings) <= _MOST_IN_FULL:
            return {one.id for one in self._findings}
        symptoms = [one for card in cards(self.study) for one in card.first]
        explained = [one.id for one in self._findings if one.explanation is not None]
        return {*explained, *(one.finding for one in symptoms)}

    @cached_property
    def _blocks(self) -> Any:
        return blocks(self.study)

    @cached_property
    def _context(self) -> dict[str, Any]:
        study, words = self.study, words_of(self.lang)
        found = self._findings
        agree, alike = agreements(study.without_formulas), alike_by_case(study.without_formulas)
        threads = seeds(study)
        told = {
            "w": words,
            "lang": self.lang,
            "study": study,
            "headline": headline(study, words),
            "scope": scope(study, words),
            "cards": cards(study),
            "matrix": matrix(study, found),
            "blocks": self._blocks,
            "answered": {
                op: [name for name in study.subjects if (op, name) in study.answered]
                for op in {block.op for block in self._blocks}
            },
            "figures": {
                block.op: _anchor("figures", block.op)
                for block in self._blocks
                if any(row.scores for row in block.rows)
            },
            "marks": vocabulary.VERDICTS,
            "unusual": vocabulary.UNUSUAL,
            "flags": sorted({flag for one in study.measurements for flag in one.flags}),
            "findings": found,
            "in_full": self._in_full,
            "usual": [one for one in found if one.input is not Input.EDGE],
            "edges": [one for one in found if one.input is Input.EDGE],
            "largest": _largest_rounding(study),
            "agreements": agree,
            "pairs": sorted({names for one in agree for names in one.pairs}),
            "alike": alike,
            "alike_ids": {op: _anchor("alike", op) for op in alike},
            "seeds": threads,
            "seed_sentences": sentences(threads, words),
            "invariances": invariances(study),
            "certainties": certainties(study),
            "tiers": TIERS,
            "unrun": unrun(study),
            "gathered": _gathered,
            "environments": [environment_lines(one) for one in study.environments],
            "limits": _limits(study),
            "bounds_plot": self.bounds_plot,
            "growth": self.growth,
            "spread": self.spread,
            "css": Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
            "script": Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
            "counted": counted,
            "longest_script": _LONGEST_SCRIPT,
            "shown_inputs": shown_inputs,
            "short_number": short_number,
            "point_text": point_text,
            "cause_text": cause_text,
            "advice_of": partial(_advice, lang=self.lang),
            "figures_of": partial(_figures, words=words),
            "misleads": partial(_misleads, words=words),
            "short_of": partial(vocabulary.short_of, lang=self.lang),
            "meaning_of": partial(vocabulary.meaning_of, lang=self.lang),
            "meaning_of_flag": partial(vocabulary.meaning_of_flag, lang=self.lang),
            "meaning_of_status": partial(vocabulary.meaning_of_status, lang=self.lang),
            "meaning_of_property": partial(vocabulary.meaning_of_property, lang=self.lang),
        }
        optional = ("cards", "matrix", "figures", "growth", "invariances", "certainties")
        names = {"invariances": "invariance", "certainties": "certainty"}
        shown = {names.get(name, name): bool(told[name]) for name in optional}
        shown |= {"growth": bool(self.growth or self.spread), "agreement": bool(agree)}
        shown |= {"seeds": bool(threads)}
        order = (
            "cards", "matrix", "findings", "figures", "rounding", "growth", "agreement",
            "invariance", "seeds", "certainty", "unrun", "read", "environments",
        )  # fmt: skip
        return {**told, "sections": [name for name in order if shown.get(name, True)]}


def _anchor(kind: str, name: str) -> str:
    """A name for links: readable, and another for every other name."""
    safe = safe_name(name)
    if safe != name:
        safe = f"{safe[:40]}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return f"{kind}-{safe}"


def _gathered(places: Iterable[str]) -> list[str]:
    """`sin backward float16, float32` of places that differ in the format."""
    formats: dict[str, list[str]] = defaultdict(list)
    for place in places:
        op, direction, *dtype = place.split(" ")
        formats[f"{op} {direction}"].append(" ".join(dtype))
    return [f"{place} {', '.join(some)}" for place, some in formats.items()]


def _advice(explanation: Record | None, lang: str) -> str:
    cause = known_cause(explanation)
    return advice(cause, lang) if cause else ""


def _figures(one: Finding, words: Mapping[str, str]) -> Markup:
    """A finding's figures over all its cases."""
    lang = words["lang"]
    text = (
        Markup("{}")
        .format(words["figures_of"])
        .format(
            mean=_data(one.mean, numerals.ulps(one.mean, one.dtype, lang)),
            ulp=_data(one.ulp, numerals.ulps(one.ulp, one.dtype, lang)),
            bound=_data(one.bound, numerals.ratio(one.bound)),
            plain=_datum(one.plain),
        )
    )
    if one.absolute is not None:
        size = numerals.figure(one.absolute)
        text += Markup("{}{}").format(words["comma"], words["absolute"].format(size=size))
    return text


def _misleads(one: Measurement, words: Mapping[str, str]) -> str:
    return words["misleads"].format(
        place=f"{one.subject}, {one.op} {one.direction} {one.dtype}",
        ulp=numerals.ulps(one.number("ulp", "max"), one.dtype, words["lang"]),
        case=one.case,
        condition=numerals.figure(as_number(one.worst.get("condition"))),
        bound=numerals.ratio(one.number("bound", "max_ratio")),
    )


def _row(one: Measurement, study: Study) -> list[Any]:
    ok = one.status == "ok"
    return [
        one.op, one.direction, one.dtype, one.record["framework"], one.record.get("version"),
        one.device, one.case, one.output, one.status, one.verdict.name if ok else None,
        " ".join(one.flags), input_of(one).name.lower() if ok else None,
        one.tally("elements") if ok else None, concerned(one)[0] if ok else None,
        one.tally("not_correctly_rounded") if ok else None, one.number("ulp", "max"),
        one.number("ulp", "mean"), one.number("bound", "max_ratio"), one.number("plain", "ratio"),
        one.number("condition", "median"), known_cause(study.explanation_of(one)),
    ]  # fmt: skip


def slim(page: str) -> str:
    """The page without what HTML does not need: end tags of cells and list items, quotes around
    plain values, scopes of heads, empty lines. Text holds neither tags nor double quotes, as they
    are escaped there."""
    body, script, end = page.partition("<script>")
    body = re.sub(r"</(?:td|th|tr|li|dt|dd)>\s*", "", body)
    body = re.sub(r' scope="(?:col|row)"', "", body)
    body = re.sub(r'(?<=[a-z]=)"([\w.#/-]+)"(?=[ >])', r"\1", body)
    body = body.replace("&#39;", "'").replace("&nbsp;", "\u00a0")
    return re.sub(r"\n(?:[ \t]*\n)+", "\n", body) + script + end


def template(name: str, html: bool) -> jinja2.Template:
    """A template with this project's filters."""
    return _environment(html).get_template(name)


def _environment(html: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=html,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        figure=numerals.figure, ratio=numerals.ratio,
        md=lambda value: escaping.escaped(str(value)), datum=_datum,
        ulps=numerals.ulps, ulp_figure=numerals.ulp_figure,
        code=escaping.code, brief=_brief, within=_within,
        svg=lambda plot: Markup(plot.inline),
    )  # fmt: skip
    environment.globals["share"] = numerals.share
    return environment


def _datum(value: float | None, decimals: int = 1) -> Markup:
    """A number as HTML: rounded to read, exact in `value`."""
    return _data(value, numerals.figure(value, decimals))


def _data(value: float | None, text: str) -> Markup:
    if value is None:
        return Markup('<span class="none">–</span>')
    return Markup('<data value="{0}">{1}</data>').format(repr(value), text)


def _brief(case: str) -> str:
    """A case without its seed, for a narrow column: `cos/seed_pi[k_max=64]`."""
    return re.sub(r",?seed=\w+(?=\]$)", "", case).replace("[]", "")


def _within(case: str, op: str) -> str:
    """A case without its op, where that is said already."""
    return _brief(case).removeprefix(f"{op}/")


def _largest_rounding(study: Study) -> Measurement | None:
    """The largest error in ulp that is rounding all the same: why ulp alone misleads."""
    some = [
        one
        for one in study.measurements
        if one.verdict.name == "rounding"
        and not one.unusual
        and as_number(one.worst.get("condition"))
        and (one.ulp_max or 0) > 100
    ]
    return max(some, key=lambda one: (one.ulp_max or 0, one.case), default=None)


def _limits(study: Study) -> list[tuple[str, str, str]]:
    """(ops, limit, source) of the declared limits that the records carry."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in study.measurements:
        bound = one.record.get("bound") or {}
        limit = as_number(bound.get("limit"))
        if limit is not None:
            source = str(bound.get("limit_source") or "no source recorded")
            found[numerals.figure(limit), source].add(one.op)
    return sorted((numerals.joined(sorted(ops)), *limit) for limit, ops in found.items())


def environment_lines(record: Record) -> list[tuple[str, str]]:
    """(name, value) lines of an environment record, empty values left out."""
    lines = []
    for name, value in record.items():
        if name in ("schema", "kind") or value in (None, "", [], {}):
            continue
        if isinstance(value, dict):
            parts = [f"{key} {inner}" for key, inner in value.items() if inner is not None]
            value = ", ".join(parts)
        elif isinstance(value, list):
            value = ", ".join(str(one) for one in value)
        if value != "":
            lines.append((name, str(value)))
    return lines
