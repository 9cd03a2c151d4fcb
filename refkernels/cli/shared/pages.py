"""Makes pages of records, and prints tables and pages."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from refkernels.cli.shared.endings import refuse


def show_measured(directory: Path, lang: str = "en", everything: bool = False) -> None:
    """Make the views of directory/records.jsonl, and print the cards; every symptom with
    `everything`."""
    from rich.console import Console

    from refkernels import reporting
    from refkernels.reporting.words.report import words_of

    words = words_of(lang)
    _write_and_print(
        directory,
        "records.jsonl",
        lambda folder: reporting.write_report(folder, lang),
        lambda records: reporting.terminal_table(
            records, lang, height=Console().height, everything=everything
        ),
        [words["look"].format(page=directory / "report.html")]
        + ([] if everything else [words["look_all"].format(folder=shlex.quote(str(directory)))]),
    )


def show_swept(directory: Path) -> None:
    """Make the views of directory/sweeps.jsonl, and print the table."""
    from refkernels import reporting

    _write_and_print(directory, "sweeps.jsonl", reporting.write_sweep_report, reporting.sweep_table)


def show_page(text: str, written: Sequence[Path]) -> None:
    """Print a page of Markdown, and the names of the written files."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=min(Console().width, 110))
    console.print(Markdown(text))
    for path in written:
        console.print(f"Written: {path}", markup=False, soft_wrap=True)


def _write_and_print(
    directory: Path,
    name: str,
    write: Callable[[Path], list[Path]],
    table: Callable[[list[dict[str, Any]]], Any],
    look: Sequence[str] = (),
) -> None:
    from rich.console import Console

    from refkernels import reporting

    try:
        written = write(directory)
        records = reporting.read_records(directory / name)
    except reporting.RecordsError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename or directory}: {error.strerror}.")
    Console().print(table(records))
    if look:
        for line in look:
            typer.echo(line)
        return
    page = next((path for path in written if path.suffix == ".html"), directory)
    more = len(written) - 1
    typer.echo(f"Written: {page} and {more} more file{'' if more == 1 else 's'} beside it.")
