"""A hook of MkDocs (mkdocs.yml): adds generated pages to those of docs/ in `make docs`.

The gallery in English and Chinese, the reference of the command line and the plots of the kept
results are generated with the site, so that they are never out of date. Equations become MathML,
which needs no script.
"""

from __future__ import annotations

import html
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
LANGUAGES = {"en": ".md", "zh": ".zh.md"}
_MATHS = re.compile(
    r'<(?P<tag>div|span) class="arithmatex">\\(?P<kind>[\[(])(?P<tex>.*?)\\[\])]</(?P=tag)>', re.S
)
_OUTSIDE = re.compile(r"\]\(\.\./(?=benchmarks/results/)")


def on_config(config: Any) -> Any:
    """List the pages of docs/ops in the navigation."""
    pages = sorted(path.name for path in (ROOT / "docs" / "ops").glob("*_ref.md"))
    (ops,) = (part["Ops"] for part in _parts(config.nav) if "Ops" in part)
    ops += [f"ops/{page}" for page in pages]
    return config


def _parts(nav: list[Any]) -> Iterator[dict[str, Any]]:
    for part in nav:
        if isinstance(part, dict):
            yield part
            for inner in part.values():
                yield from _parts(inner) if isinstance(inner, list) else ()


def on_files(files: Files, config: Any) -> Files:
    """The files, with the generated pages and the plots."""
    for name, text in (*gallery_pages(), ("cli.md", command_line())):
        files.append(File.generated(config, name, content=text))
    for plot in sorted(RESULTS.glob("*/plots/*.png")):
        place = plot.relative_to(ROOT).as_posix()
        files.append(File.generated(config, place, abs_src_path=str(plot)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to pictures beside docs/ become links into the site."""
    return _OUTSIDE.sub("](", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Equations as MathML."""
    return _MATHS.sub(_mathml, html)


def _mathml(match: re.Match[str]) -> str:
    display = "block" if match["kind"] == "[" else "inline"
    return convert(html.unescape(match["tex"]).strip(), display=display)


def gallery_pages() -> list[tuple[str, str]]:
    """A page for each thread in each language, and their index. With SITE_EXPLAINS=one, for a site
    that is built to check its links, all have the first one's explanation: tests explain each."""
    from refkernels import gallery
    from refkernels.cli.gallery import page_of

    pages, rows, explanation = [], [], None
    for name in gallery.names():
        entry = gallery.load(name)
        if explanation is None or os.environ.get("SITE_EXPLAINS") != "one":
            explanation = entry.explain()
        for language, suffix in LANGUAGES.items():
            page = page_of(entry, explanation, language)
            title, other = ("中文", "zh") if language == "en" else ("English", "en")
            link = f"[{title}]({name}{LANGUAGES[other]})"
            pages.append((f"gallery/{name}{suffix}", f"{page}\n\n{link}\n"))
        rows.append(f"| [{name}]({name}.md) ([中文]({name}.zh.md)) | {explanation.summary} |")
    head = ["# Gallery", "", INTRODUCTION, "", "| thread | explanation |", "|---|---|"]
    return [*pages, ("gallery/index.md", "\n".join([*head, *rows, ""]))]


INTRODUCTION = (
    "Discrepancies that people reported in public threads, each with the explanation that "
    "`refkernels explain` gives of its numbers. `refkernels gallery NAME` prints the same page."
)


def command_line() -> str:
    """The help texts of every command."""
    from typer.main import get_command

    from refkernels.cli.app import app

    out = io.StringIO()
    out.write("# Command line\n\nEvery command's own `--help`.\n")
    for path, command in _commands(get_command(app), "refkernels"):
        context = command.make_context(path, [], resilient_parsing=True)
        out.write(f"\n## {path}\n\n```\n{command.get_help(context).strip()}\n```\n")
    return out.getvalue()


def _commands(command: Any, path: str) -> list[tuple[str, Any]]:
    names = getattr(command, "commands", {})
    commands = [(path, command)]
    for name in names:
        commands += _commands(names[name], f"{path} {name}")
    return commands
