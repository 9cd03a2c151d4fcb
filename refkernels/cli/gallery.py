"""`refkernels gallery`: reported discrepancies, explained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.options import AsJson, Language, check_language
from refkernels.cli.shared.wording import argument


def gallery(
    name: Annotated[str | None, argument("gallery.name", metavar="[NAME]")] = None,
    lang: Language = "en",
    as_json: AsJson = False,
) -> None:
    """Show discrepancies that were reported, explained.

    A table of all, or one in full. Ends with status 2 if there is no such entry.
    """
    import json

    from refkernels import gallery as entries

    check_language(lang)
    with refusing():
        chosen = [entries.load(key) for key in ([name] if name else entries.names())]
    explained = [(entry, entry.explain()) for entry in _shown(chosen)]
    if as_json:
        rows = [
            {**entry.to_dict(), "explanation": explanation.to_dict()}
            for entry, explanation in explained
        ]
        typer.echo(json.dumps(rows[0] if name else rows, ensure_ascii=False, indent=1))
    elif name:
        typer.echo(page_of(*explained[0], lang))
    else:
        _table(explained)


def _shown(chosen: list[Any]) -> Iterable[Any]:
    """The entries; on a terminal, a line shows how many have been explained."""
    import sys

    if len(chosen) == 1 or not sys.stderr.isatty():
        return chosen
    from rich.console import Console
    from rich.progress import track

    return track(chosen, "explaining", console=Console(stderr=True), transient=True)


def _table(explained: list[tuple[Any, Any]]) -> None:
    from rich.console import Console

    from refkernels.reporting.gallery import gallery_table

    rows = [(entry.to_dict(), explanation.to_dict()) for entry, explanation in explained]
    Console().print(gallery_table(rows))
    typer.echo("* answers kept as records. `refkernels gallery NAME` shows an entry in full.")


def page_of(entry: Any, explanation: Any, lang: str) -> str:
    """The page of one entry in Markdown, for the terminal and for the site."""
    from refkernels.reporting.gallery import gallery_page

    return gallery_page(entry.to_dict(), explanation.to_markdown(lang), lang)
