"""The templates of all pages: their filters, the shared style sheet and script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from refkernels.reporting.reading import Record
from refkernels.reporting.rendered import blocks, inline
from refkernels.reporting.words import escaping, numerals

if TYPE_CHECKING:
    from refkernels.reporting.figures.drawing import Drawn

TEMPLATES = Path(__file__).parent / "templates"


def template(name: str, html: bool) -> jinja2.Template:
    """A template with this project's filters."""
    return _environment(html).get_template(name)


def sections_of(text: str) -> tuple[str, str, dict[str, str]]:
    """The title and the lead of a page in Markdown, and its sections as HTML, by their titles."""
    (title, lead), *later = (part.partition("\n\n")[::2] for part in text.split("\n## "))
    return title.removeprefix("# "), lead, {name: blocks(body) for name, body in later}


def document(
    title: str, lead: str, sections: Mapping[str, str], command: str, lang: str, *pill: str
) -> str:
    """One self-contained page without scripts, for light and dark themes and for wide and narrow
    screens. `pill`: a verdict and its class."""
    return template("document.html.j2", True).render(
        lang={"en": "en", "zh": "zh-CN"}[lang],
        command=command,
        title=Markup(inline(title)),
        pill=pill,
        lead=Markup(blocks(lead)),
        sections=[(f"s{n}", name, Markup(body)) for n, (name, body) in enumerate(sections.items())],
        css=style(),
    )


def figure_of(plot: Drawn) -> str:
    """A plot within a page."""
    caption = f"<figcaption>{inline(plot.caption)}</figcaption>"
    return f'<figure id="{plot.name}"><div class="plot">{plot.inline}</div>{caption}</figure>'


def style() -> Markup:
    """The style sheet that all pages share, to be put into a page."""
    return Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))


def page_script() -> str:
    """The page's script, without its indentation."""
    return re.sub(r"(?m)^[ \t]+", "", (TEMPLATES / "report.js").read_text(encoding="utf-8"))


@cache
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
        md=lambda value: escaping.escaped(str(value)),
        ulps=numerals.ulps, ulp_figure=numerals.ulp_figure,
        code=escaping.code, brief=_brief, within=_within,
        svg=lambda plot: Markup(plot.inline), inline=lambda text: Markup(inline(text)),
    )  # fmt: skip
    environment.globals["share"] = numerals.share
    return environment


def _brief(case: str) -> str:
    """A case without its seed, for a narrow column: `cos/seed_pi[k_max=64]`."""
    return re.sub(r",?seed=\w+(?=\]$)", "", case).replace("[]", "")


def _within(case: str, op: str) -> str:
    """A case without its op, where the context names it."""
    return _brief(case).removeprefix(f"{op}/")


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
            value = ", ".join(str(item) for item in value)
        if value != "":
            lines.append((name, str(value)))
    return lines
