"""What the commands' options have in common: how much may be asked for, and how Ctrl-C ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

MOST_WORKERS = 512  # processes of one machine
MOST_TRIES = 2**36  # inputs of a search: a day's work of many cores
MOST_ELEMENTS = 2**26  # of one array that a command makes
MOST_SECONDS = 7 * 24 * 3600.0
MOST_SEED = 2**63 - 1
STOPPED = 130  # the status that shells give to what Ctrl-C ended


def seconds(text: str | float) -> float:
    """A time limit: a number of seconds from 0.1 to a week. Raises typer.BadParameter."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.1 <= value <= MOST_SECONDS:
        raise typer.BadParameter(f"{text!r} is no number from 0.1 to {MOST_SECONDS:g}.")
    return value


class Commands(TyperGroup):
    """A group of commands that Ctrl-C ends in one line, wherever they are."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        with _stoppable():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        with _stoppable():
            return super().invoke(ctx)


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("refkernels: stopped.", err=True)
        raise typer.Exit(STOPPED) from None
