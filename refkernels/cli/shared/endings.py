"""How a command ends that does not give an answer: refused, or stopped by Ctrl-C."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

STOPPED = 130  # the status that shells give to what Ctrl-C ended


def refuse(sentence: str) -> NoReturn:
    """Say in one sentence why there is no answer, and end with status 2."""
    typer.echo(f"refkernels: {sentence}", err=True)
    raise typer.Exit(2)


def stop(sentence: str) -> NoReturn:
    """Say what Ctrl-C left behind, and end with status 130."""
    typer.echo(sentence, err=True)
    raise typer.Exit(STOPPED) from None


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
        stop("refkernels: stopped.")
