"""How a command ends without an answer: by a refusal, or by Ctrl-C."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

STOPPED = 130  # the status that shells give to a command ended by Ctrl-C


def refuse(sentence: str) -> NoReturn:
    """Print the sentence that says why there is no answer, and end with status 2."""
    typer.echo(f"refkernels: {sentence}", err=True)
    raise typer.Exit(2)


def stop(sentence: str) -> NoReturn:
    """Print the state after Ctrl-C, and end with status 130."""
    typer.echo(sentence, err=True)
    raise typer.Exit(STOPPED) from None


class Commands(TyperGroup):
    """A group of commands that Ctrl-C ends with one line, at any moment."""

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
