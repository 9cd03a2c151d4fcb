"""`refkernels gallery`: reported discrepancies, explained."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.options import AsJson, Language
from refkernels.cli.shared.wording import argument


def gallery(
    name: Annotated[str | None, argument("gallery.name")] = None,
    lang: Language = "en",
    as_json: AsJson = False,
) -> None:
    """Show discrepancies that were reported, explained.

    A table of all, or one in full. Ends with status 2 if there is no such entry.
    """
    import json

    from refkernels import gallery as entries

    with refusing():
        chosen = [entries.load(key) for key in ([name] if name else entries.names())]
    if not name:
        rows = [entry.to_dict() for entry in chosen]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1)) if as_json else _table(rows)
        return
    (entry,) = chosen
    explanation = entry.explain()
    if as_json:
        row = {**entry.to_dict(), "explanation": explanation.to_dict()}
        typer.echo(json.dumps(row, ensure_ascii=False, indent=1))
    else:
        typer.echo(page_of(entry, explanation, lang))


def _table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from refkernels.reporting.gallery import gallery_table

    Console().print(gallery_table(rows))
    typer.echo("* answers kept as records. `refkernels gallery NAME` explains an entry in full.")


def page_of(entry: Any, explanation: Any, lang: str) -> str:
    """The page of one entry in Markdown, for the terminal and for the site."""
    from refkernels.reporting.gallery import gallery_page

    return gallery_page(entry.to_dict(), explanation.to_markdown(lang), lang)
