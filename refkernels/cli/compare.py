"""`refkernels compare`: what changed between two runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared.endings import refuse, refusing
from refkernels.cli.shared.options import Everything, Language, one_of
from refkernels.cli.shared.wording import argument, option

FAIL_ON = one_of("--fail-on", "worse", "bits", "never")


def compare(
    old: Annotated[Path, argument("compare.old")],
    new: Annotated[Path, argument("compare.new")],
    out: Annotated[Path | None, option("compare.out")] = None,
    lang: Language = "en",
    everything: Everything = False,
    fail_on: Annotated[str, option("compare.fail_on", parser=FAIL_ON)] = "worse",
) -> None:
    """Compare two measured runs: what is new, fixed or worse?

    Or is better, or has new bits. Ends with status 1 if something is as bad as --fail-on, 2 if a
    run cannot be read; otherwise with 0.
    """
    from rich.console import Console

    from refkernels.reporting.compare import changes, views
    from refkernels.reporting.words.report import words_of

    comparison = changes.compare(_study(old), _study(new))
    console = Console()
    room = None if everything else max(5, (console.height - 8) // 2)
    console.print(views.comparison_table(comparison, str(old), str(new), lang, room))
    if out is not None:
        page = new / "report.html"
        link = Path(os.path.relpath(page, out)).as_posix() if page.exists() else ""
        with refusing(out):
            written = views.write_comparison(out, comparison, str(old), str(new), lang, link)
        typer.echo(words_of(lang)("look", page=written[0]))
    bad = comparison.setbacks if fail_on == "worse" else comparison.both - comparison.counts["same"]
    if fail_on != "never" and (bad or comparison.setbacks):
        raise typer.Exit(1)


def _study(directory: Path) -> Any:
    from refkernels import reporting
    from refkernels.reporting.measure.study import Study

    if directory.is_file():
        refuse(f"{directory} is a file: give the folder of `refkernels measure --out DIR`.")
    with refusing(directory):
        return Study.of(reporting.read_records(directory / "records.jsonl"))
