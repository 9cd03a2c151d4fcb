"""`refkernels gallery`: reported discrepancies, explained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from refkernels.cli.shared.endings import refuse
from refkernels.cli.shared.options import AsJson, Language


def gallery(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="An entry of the table.")
    ] = None,
    lang: Language = "en",
    as_json: AsJson = False,
) -> None:
    """Discrepancies that people reported, each with its explanation: all of them, or one in full.

    Ends with status 2 where there is no such entry.
    """
    import json

    from refkernels import gallery as entries

    if lang not in ("en", "zh"):
        refuse(f"--lang {lang!r} is not en or zh.")
    try:
        chosen = [entries.load(one) for one in ([name] if name else entries.names())]
    except entries.EntryError as error:
        refuse(str(error))
    told = [(entry, entry.explain()) for entry in _shown(chosen)]
    if as_json:
        rows = [{**entry.to_dict(), "explanation": found.to_dict()} for entry, found in told]
        typer.echo(json.dumps(rows[0] if name else rows, ensure_ascii=False, indent=1))
    elif name:
        typer.echo(_page(*told[0], lang))
    else:
        _table(told)


def _shown(chosen: list[Any]) -> Iterable[Any]:
    """With a line on a terminal that says how many are explained."""
    import sys

    if len(chosen) == 1 or not sys.stderr.isatty():
        return chosen
    from rich.console import Console
    from rich.progress import track

    return track(chosen, "explaining", console=Console(stderr=True), transient=True)


def _table(told: list[tuple[Any, Any]]) -> None:
    from rich.console import Console

    from refkernels.reporting.gallery import gallery_table

    rows = [(entry.to_dict(), found.to_dict()) for entry, found in told]
    Console().print(gallery_table(rows))
    typer.echo("* answers recorded elsewhere. `refkernels gallery NAME` tells one in full.")


def _page(entry: Any, explanation: Any, lang: str) -> str:
    from refkernels.gallery import consequences
    from refkernels.reporting.gallery import gallery_page

    schedule = consequences.cosine_decay() if entry.consequence == "cosine_decay" else None
    return gallery_page(entry.to_dict(), explanation.to_markdown(lang), schedule, lang)
