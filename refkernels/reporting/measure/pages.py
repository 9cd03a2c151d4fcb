"""The two pages: what a template may see, and how the templates are filled."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from refkernels.reporting.figures.drawing import Drawn
from refkernels.reporting.measure.certainty import TIERS, certainties
from refkernels.reporting.measure.comparisons import agreements, invariances
from refkernels.reporting.measure.findings import findings, point_text, unrun
from refkernels.reporting.measure.headline import headline
from refkernels.reporting.measure.plots import draw_bounds, draw_growth, draw_spread
from refkernels.reporting.measure.scores import blocks
from refkernels.reporting.measure.seeds import seeds, sentences
from refkernels.reporting.measure.series import growth_plots, spreads
from refkernels.reporting.measure.study import Measurement, Study, as_number
from refkernels.reporting.reading import Record
from refkernels.reporting.words import escaping, numerals, vocabulary

TEMPLATES = Path(__file__).parent.parent / "templates"
MOST_FINDINGS = 150
MOST_AGREEMENTS = 60


@dataclass(frozen=True, eq=False)
class Report:
    """All views of one study."""

    study: Study

    @classmethod
    def of(cls, records: list[Record]) -> Report:
        """The report of some records."""
        return cls(Study.of(records))

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
        """The self-contained page."""
        page = _environment(html=True).get_template("report.html.j2")
        return page.render(**self._context)

    def markdown(self) -> str:
        """The short version for an issue thread."""
        return _environment(html=False).get_template("report.md.j2").render(**self._context)

    @cached_property
    def _blocks(self) -> Any:
        return blocks(self.study)

    @cached_property
    def _context(self) -> dict[str, Any]:
        found = findings(self.study)
        agree = agreements(self.study)
        threads = seeds(self.study)
        return {
            "study": self.study,
            "headline": headline(self.study),
            "blocks": self._blocks,
            "verdicts": vocabulary.VERDICTS,
            "unusual": vocabulary.UNUSUAL,
            "flags": _flags_seen(self.study),
            "findings": found[:MOST_FINDINGS],
            "findings_left": max(0, len(found) - MOST_FINDINGS),
            "largest": _largest_rounding(self.study),
            "agreements": agree[:MOST_AGREEMENTS],
            "agreements_left": max(0, len(agree) - MOST_AGREEMENTS),
            "seeds": threads,
            "seed_sentences": sentences(threads),
            "invariances": invariances(self.study),
            "certainties": certainties(self.study),
            "tiers": TIERS,
            "unrun": unrun(self.study),
            "environments": [environment_lines(one) for one in self.study.environments],
            "limits": _limits(self.study),
            "bounds_plot": self.bounds_plot,
            "growth": self.growth,
            "spread": self.spread,
            "css": Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
            "point_text": point_text,
            "meaning_of_flag": vocabulary.meaning_of_flag,
            "meaning_of_status": vocabulary.meaning_of_status,
        }


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
        figure=numerals.figure, ratio=numerals.ratio, count=numerals.count, joined=numerals.joined,
        clipped=escaping.clipped, md=lambda value: escaping.escaped(str(value)), datum=_datum,
        datum_ulp=_datum_ulp, ulps=numerals.ulps, ulp_figure=numerals.ulp_figure,
        code=escaping.code, datum_ratio=_datum_ratio, brief=_brief,
        svg=lambda plot: Markup(plot.inline),
    )  # fmt: skip
    environment.globals["share"] = numerals.share
    return environment


def _datum(value: float | None, decimals: int = 1) -> Markup:
    """A number as HTML: rounded to read, exact in `value` and in the tooltip."""
    return _data(value, numerals.figure(value, decimals))


def _datum_ulp(value: float | None, dtype: str) -> Markup:
    """A number of ulp, in words where no digit is right, with its full value to hover for."""
    return _data(value, numerals.ulp_figure(value, dtype))


def _datum_ratio(value: float | None) -> Markup:
    return _data(value, numerals.ratio(value))


def _data(value: float | None, text: str) -> Markup:
    if value is None:
        return Markup('<span class="none">–</span>')
    return Markup('<data value="{0}" title="{0}">{1}</data>').format(repr(value), text)


def _brief(case: str) -> str:
    """A case without its seed, for a narrow column: `cos/seed_pi[k_max=64]`."""
    return re.sub(r",?seed=\w+(?=\]$)", "", case).replace("[]", "")


def _flags_seen(study: Study) -> list[tuple[str, str]]:
    names = sorted({flag for one in study.measurements for flag in one.flags})
    return [(name, vocabulary.meaning_of_flag(name)) for name in names]


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
