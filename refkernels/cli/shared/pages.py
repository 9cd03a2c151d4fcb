"""Writes the pages of records, and prints tables and pages."""

from __future__ import annotations

import contextlib
import itertools
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import typer

from refkernels.cli.shared.endings import refusing

Record = dict[str, Any]
_FEWEST_CALLS = 4  # of `starmap`: with fewer, a process takes longer to start than it saves
_MOST_PROCESSES = 4  # processes of `starmap`: each takes a quarter of a gigabyte


def show_measured(directory: Path, lang: str = "en", everything: bool = False) -> None:
    """Write the views of directory/records.jsonl and print the cards, with every symptom if
    `everything`."""
    from rich.console import Console

    from refkernels import reporting
    from refkernels.reporting.words.report import words_of

    words = words_of(lang)
    _write_and_print(
        directory,
        "records.jsonl",
        lambda folder, records: reporting.write_report(folder, lang, starmap, records),
        lambda records: reporting.terminal_table(
            records, lang, height=Console().height, everything=everything
        ),
        [words("look", page=directory / "report.html")]
        + ([] if everything else [words("look_all", folder=shlex.quote(str(directory)))]),
    )


def starmap(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterable[Any]:
    """`itertools.starmap`, in several processes if there are cores for them and enough to do. If
    they cannot start, or one dies, this process does the work."""
    from refkernels.runs.sweeps.pool import Processes, usable_cores

    processes = min(usable_cores(), len(arguments) // _FEWEST_CALLS, _MOST_PROCESSES)
    if processes < 2:
        return itertools.starmap(function, arguments)
    with contextlib.ExitStack() as stack:
        try:
            pool = Processes(processes)
            stack.callback(pool.close)
            executor = pool.executor()
            futures = [executor.submit(function, *call) for call in arguments]
            return [future.result() for future in futures]
        except (BrokenExecutor, OSError, EOFError):
            return itertools.starmap(function, arguments)


def show_swept(directory: Path) -> None:
    """Write the views of directory/sweeps.jsonl and print the table."""
    from refkernels import reporting

    _write_and_print(
        directory,
        "sweeps.jsonl",
        lambda folder, _: reporting.write_sweep_report(folder),
        reporting.sweep_table,
    )


def show(answer: Record, as_json: bool, text: str, written: Sequence[Path] = ()) -> None:
    """Print an answer as JSON, or its page and the names of the written files."""
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    else:
        show_page(text, written)


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
    write: Callable[[Path, list[Record]], list[Path]],
    table: Callable[[list[Record]], Any],
    closing: Sequence[str] = (),
) -> None:
    from rich.console import Console

    from refkernels import reporting

    with refusing(directory):
        records = reporting.read_records(directory / name)
        written = write(directory, records)
    Console().print(table(records))
    if closing:
        for line in closing:
            typer.echo(line)
        return
    page = next((path for path in written if path.suffix == ".html"), directory)
    others = len(written) - 1
    typer.echo(f"Written: {page} and {others} more file{'' if others == 1 else 's'} beside it.")
