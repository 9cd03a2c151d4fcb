"""The two pages, HTML and Markdown: the values for their templates, and the rendering."""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from markupsafe import Markup

from refkernels.records.words import LEVELS
from refkernels.reporting.answer.facts import advice
from refkernels.reporting.figures.drawing import Drawn
from refkernels.reporting.measure.comparisons import agreements, invariances
from refkernels.reporting.measure.findings import (
    Finding,
    findings,
    point_text,
    row_cells,
    unrun,
)
from refkernels.reporting.measure.headline import absent, headline, scope, summary
from refkernels.reporting.measure.ids import finding_id, target_id
from refkernels.reporting.measure.inputs import (
    Input,
    distinguishing_digits,
    shown_inputs,
)
from refkernels.reporting.measure.matrix import matrix
from refkernels.reporting.measure.plots import BOUNDS, draw_bounds, draw_growth
from refkernels.reporting.measure.scores import blocks
from refkernels.reporting.measure.series import growth_plots, safe_name
from refkernels.reporting.measure.signatures import float32_places
from refkernels.reporting.measure.study import Study, as_number, known_cause
from refkernels.reporting.measure.symptoms import (
    Card,
    Symptom,
    cards,
    cause_text,
    short_cause,
    symptoms,
)
from refkernels.reporting.measure.threads import sentences, threads_of
from refkernels.reporting.reading import Record
from refkernels.reporting.templating import (
    environment_lines,
    page_script,
    style,
    template,
)
from refkernels.reporting.words import numerals, vocabulary
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.report import counted, listed, words_of
from refkernels.target_names import framework_of

_LONGEST_SCRIPT = 1000  # characters in the page; a longer script is a file beside it
Starmap = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterable[Any]]
_MOST_IN_FULL = 150  # findings of a small run
_MOST_EXPLAINED = 20  # explained findings of a larger run that get more than a row
_MOST_OPS = 8  # that did not run, before they are folded


@dataclass(frozen=True, eq=False)
class Report:
    """All views of one study, in a language. Raises ValueError for an unknown language."""

    study: Study
    lang: str = "en"

    starmap: Starmap = itertools.starmap
    """Draws the plots: a function like `itertools.starmap`, perhaps one of several processes."""

    records_file: str = "records.jsonl"
    """The name of the file of records beside the page."""

    @classmethod
    def of(cls, records: list[Record], lang: str = "en", **options: Any) -> Report:
        """The report of some records. `options`: the other fields."""
        words_of(lang)
        return cls(Study.of(records), lang, **options)

    @cached_property
    def plots(self) -> list[Drawn]:
        """Every plot, in the order of the page: error / bound, then the errors' growth."""
        study, subjects = self.study, self.study.subjects
        jobs: list[tuple[Any, ...]] = [(draw_bounds, self._blocks, subjects)]
        jobs += [(draw_growth, plot, subjects) for plot in growth_plots(study)]
        return [plot for plot in self.starmap(_draw, jobs) if plot is not None]

    @property
    def growth(self) -> list[Drawn]:
        """The plots of the errors' growth."""
        return [plot for plot in self.plots if plot.name != BOUNDS]

    def html(self) -> str:
        """The page; plots and downloadable figures lie beside it."""
        return template("report.html.j2", html=True).render(**self._context)

    def markdown(self) -> str:
        """The short version for an issue thread."""
        return template("report.md.j2", html=False).render(**self._context)

    @property
    def scripts(self) -> dict[str, str]:
        """The script of each finding that has one, by its id; that of a second cause of the same
        finding by its id and that cause."""
        scripts = {finding.id: finding.script for finding in self._findings if finding.script}
        for symptom in self._symptoms:
            script = (symptom.explanation or {}).get("script")
            if script and script != scripts.setdefault(symptom.finding, script):
                scripts[f"{symptom.finding}-{symptom.cause}"] = script
        return scripts

    @cached_property
    def _findings(self) -> list[Finding]:
        return findings(self.study)

    @cached_property
    def _symptoms(self) -> list[Symptom]:
        return symptoms(self.study)

    @cached_property
    def _cards(self) -> list[Card]:
        return cards(self.study, self._symptoms)

    @cached_property
    def _in_full(self) -> set[str]:
        """The ids of the findings that get more than a row: all of a small run; of a large one,
        those that a card shows unfolded, and the first of those that are explained."""
        if len(self._findings) <= _MOST_IN_FULL:
            return {finding.id for finding in self._findings}
        first = [symptom for card in self._cards for symptom in card.first]
        explained = [finding.id for finding in self._findings if finding.explanation is not None]
        return {*explained[:_MOST_EXPLAINED], *(symptom.finding for symptom in first)}

    @cached_property
    def _blocks(self) -> Any:
        return blocks(self.study)

    @cached_property
    def _context(self) -> dict[str, Any]:
        study, words = self.study, words_of(self.lang)
        findings = self._findings
        agree, tables = agreements(study.without_formulas), invariances(study)
        threads = threads_of(study)
        context = {
            "w": words,
            "lang": self.lang,
            "records_file": self.records_file,
            "study": study,
            "headline": headline(study, words),
            "summary": summary(study, words),
            "scope": scope(study, words),
            "absent": absent(study, words),
            "cards": self._cards,
            "matrix": matrix(study, findings),
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
            "levels": LEVELS,
            "target_id": target_id,
            "framework_of": framework_of,
            "marks": vocabulary.LEVEL_WORDS,
            "unusual": vocabulary.UNUSUAL,
            "flags": sorted({flag for m in study.measurements for flag in m.flags}),
            "findings": findings,
            "in_full": self._in_full,
            "usual": [finding for finding in findings if finding.input is not Input.EDGE],
            "edges": [finding for finding in findings if finding.input is Input.EDGE],
            "agreements": agree,
            "pairs": sorted({names for agreement in agree for names in agreement.pairs}),
            "threads": threads,
            "thread_sentences": sentences(threads, words),
            "invariances": tables,
            "unrun": unrun(study),
            "gathered": _gathered,
            "environments": [environment_lines(record) for record in study.environments],
            "limits": _limits(study),
            "bounds_plot": next((plot for plot in self.plots if plot.name == BOUNDS), None),
            "growth": self.growth,
            "css": style(),
            "script": Markup(page_script()),
            "counted": counted,
            "longest_script": _LONGEST_SCRIPT,
            "shown_inputs": shown_inputs,
            "distinguishing_digits": distinguishing_digits,
            "point_text": point_text,
            "row_cells": partial(row_cells, words=words),
            "properties": list(dict.fromkeys(name for table in tables for name in table.rows)),
            "cause_of": partial(
                _cause_of,
                words=words,
                float32=_float32_outputs(findings),
                beside=_explained_beside(self._symptoms),
            ),
            "advice_of": partial(_advice, lang=self.lang),
            "figures_of": partial(_figures, words=words),
            "short_of": partial(vocabulary.short_of, lang=self.lang),
            "meaning_of": partial(vocabulary.meaning_of, lang=self.lang),
        }
        shown = {name: bool(context[name]) for name in ("cards", "matrix", "figures", "growth")}
        shown |= {"agreement": bool(agree), "invariance": bool(tables)}
        shown |= {"threads": bool(threads)}
        order = (
            "cards", "matrix", "findings", "figures", "rounding", "growth", "agreement",
            "invariance", "threads", "unrun", "read", "environments",
        )  # fmt: skip
        return {**context, "sections": [name for name in order if shown.get(name, True)]}


def _draw(function: Callable[..., Drawn | None], *arguments: Any) -> Drawn | None:
    return function(*arguments)


def _anchor(kind: str, name: str) -> str:
    """A name for links: readable, and different for different names."""
    safe = safe_name(name)
    if safe != name:
        safe = f"{safe[:40]}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return f"{kind}-{safe}"


def _gathered(places: Iterable[str]) -> list[tuple[str, tuple[str, str] | None]]:
    """`forward float16, float32: cos, sin`: each combination of passes and formats once, with its
    ops. Those after the first `_MOST_OPS` are apart, to be folded: ("+9", "tan, ...")."""
    passes: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for place in places:
        op, direction, *dtype = place.split(" ")
        passes[op][direction].append(" ".join(dtype))
    ops: dict[str, list[str]] = defaultdict(list)
    for op, formats in passes.items():
        directions: dict[str, list[str]] = defaultdict(list)
        for direction, dtypes in formats.items():
            directions[", ".join(dtypes)].append(direction)
        parts = [f"{', '.join(alike)} {dtypes}" for dtypes, alike in directions.items()]
        ops["; ".join(parts)].append(op)
    return [
        (
            f"{where}: {', '.join(names[:_MOST_OPS])}",
            (f"+{len(names) - _MOST_OPS}", ", ".join(names[_MOST_OPS:]))
            if len(names) > _MOST_OPS
            else None,
        )
        for where, names in ops.items()
    ]


def _float32_outputs(findings: Iterable[Finding]) -> dict[tuple[str, ...], list[str]]:
    """The outputs of each target's op, pass and format with float32 numbers as float64 answers."""
    outputs: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for *place, output in sorted(float32_places(finding.example for finding in findings)):
        outputs[tuple(place)].append(output)
    return outputs


def _explained_beside(all_symptoms: Iterable[Symptom]) -> dict[str, Symptom]:
    """The symptom with a known cause that each finding belongs to, by the finding's id."""
    return {
        finding_id(m): symptom
        for symptom in all_symptoms
        if known_cause(symptom.explanation)
        for m in symptom.covered
    }


def _cause_of(
    finding: Finding,
    words: Texts,
    float32: Mapping[tuple[str, ...], Sequence[str]],
    beside: Mapping[str, Symptom],
    short: bool = False,
) -> str:
    """What explains a finding: what was found (`short`: by its identifier); that its answer or
    another output of the same call is a float32 number; or the finding of its symptom that is
    explained. "" if nothing is known."""
    text = short_cause if short else cause_text
    if because := text(finding.explanation, words, finding.example):
        return because
    *place, output = finding.place
    outputs = float32.get(tuple(place), ())
    if output in outputs:
        return words["float32_answer"]
    if outputs:
        return words("float32_beside", names=listed(words, list(outputs)))
    if (symptom := beside.get(finding.id)) is None:
        return ""
    link = Markup('<a href="#{}">{}</a>').format(symptom.finding, symptom.cause)
    return Markup("{}").format(words["explained_beside"]).format(cause=link)


def _advice(explanation: Record | None, lang: str) -> str:
    cause = known_cause(explanation)
    return advice(cause, lang) if cause else ""


def _figures(finding: Finding, words: Texts) -> str:
    """A finding's figures over all its cases."""
    lang = words.lang
    text = words["figures_of"].format(
        mean=numerals.ulps(finding.mean, finding.dtype, lang),
        ulp=numerals.ulps(finding.ulp, finding.dtype, lang),
        bound=numerals.ratio(finding.bound),
        plain=numerals.figure(finding.plain),
    )
    if finding.absolute is not None:
        text += words["comma"] + words("absolute", size=numerals.figure(finding.absolute))
    return text


def _limits(study: Study) -> list[tuple[str, str, str]]:
    """(ops, limit, source) of the declared limits in the records."""
    ops_of: dict[tuple[str, str], set[str]] = defaultdict(set)
    for m in study.measurements:
        bound = m.record.get("bound") or {}
        limit = as_number(bound.get("limit"))
        if limit is not None:
            source = str(bound.get("limit_source") or "no source recorded")
            ops_of[numerals.figure(limit), source].add(m.op)
    return sorted((numerals.joined(sorted(ops)), *limit) for limit, ops in ops_of.items())
