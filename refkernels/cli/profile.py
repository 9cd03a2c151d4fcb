"""`refkernels profile`: which calls of a PyTorch program cost its accuracy?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from refkernels.cli.shared import pages
from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.options import AsJson, Language, check_language


def profile(
    program: Annotated[
        str,
        typer.Argument(metavar="FILE.py[:FUNCTION]", help="A function without arguments that "
                       "returns the program's result, or a script, which runs up to its first "
                       "backward()."),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARG]...", help="Arguments of the script.")
    ] = None,
    framework: Annotated[
        str, typer.Option(help="Which PyTorch: torch, torch==VERSION.")
    ] = "torch",
    lang: Language = "en",
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for profile.html and profile.md, both also in Chinese (.zh), "
                     "and profile.json."),
    ] = None,
) -> None:  # fmt: skip
    """Say which calls of a PyTorch program cost its accuracy, and what float64 there buys."""
    from refkernels.profiling.program import of_file

    check_language(lang)
    with refusing(out):
        found = of_file(program, arguments or [], framework)
        written = [] if out is None else found.write(out)
    pages.show(found.record, as_json, found.markdown(lang), written)
