"""A command's progress: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import typer

_SECONDS = 20.0  # between lines of a log


@contextlib.contextmanager
def progress_bar(*columns: Any, **options: Any) -> Iterator[Any]:
    """A `rich` bar on standard error. The caller starts it with the first update, so that a refused
    question gets one sentence and no bar."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(*columns, console=Console(stderr=True), **options)
    try:
        yield bar
    finally:
        if bar.live.is_started:
            bar.stop()


@contextlib.contextmanager
def _logged(task: Any) -> Iterator[None]:
    """Write a line about the task every 20 s, also during a long unit."""
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(_SECONDS):
            if task.total:
                typer.echo(line_of(task), err=True)

    threading.Thread(target=write, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def line_of(task: Any) -> str:
    """`10 %, 40 of 400, 3 min left: unit 40`."""
    left = f", {_span(task.time_remaining)} left" if task.time_remaining else ""
    unit = f": {task.description}" if task.description else ""
    return f"{task.percentage:.0f} %, {task.fields['count']}{left}{unit}"


def _span(seconds: float) -> str:
    """`40 s`, `3 min`, `1.5 h`."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


Show = Callable[[int, int, str], None]
"""Shows how much of the work is done, of how much, and the unit in progress."""


@contextlib.contextmanager
def shown(label: str, millions: bool = False) -> Iterator[tuple[Show, Any]]:
    """A `Show` and its console, standard error: a bar on a terminal, elsewhere a log. `millions`:
    the work is a number of inputs, and has a rate."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), TextColumn("{task.fields[count]}"))
    unit_column = TextColumn("{task.description}", markup=False)
    with progress_bar(
        *columns, TimeRemainingColumn(), unit_column, speed_estimate_period=60
    ) as bar:
        bar.add_task("", total=None, count="")
        task = bar.tasks[0]
        counted = (lambda n: f"{n / 1e6:,.1f} M") if millions else "{:,}".format

        def show(done: int, total: int, unit: str) -> None:
            if bar.console.is_terminal:
                bar.start()
            rate = f"  {task.speed / 1e6:,.0f} M/s" if millions and task.speed else ""
            count = f"{counted(done)} of {counted(total)}{rate}"
            bar.update(task.id, completed=done, total=total, description=unit[:70], count=count)

        with contextlib.nullcontext() if bar.console.is_terminal else _logged(task):
            yield show, bar.console
