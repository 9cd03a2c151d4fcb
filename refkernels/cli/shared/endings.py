"""How a command ends without an answer: by a refusal, or by Ctrl-C."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

_UsageError: Any = typer.BadParameter.__bases__[0]  # of the click that typer uses
STOPPED = 130  # the status that shells give to a command ended by Ctrl-C


def refuse(sentence: str) -> NoReturn:
    """Print why there is no answer, in a sentence, and end with status 2."""
    typer.echo(f"refkernels: {sentence}", err=True)
    raise typer.Exit(2)


def stop(sentence: str) -> NoReturn:
    """Print the state after Ctrl-C, and end with status 130."""
    typer.echo(sentence, err=True)
    raise typer.Exit(STOPPED) from None


class Commands(TyperGroup):
    """A group of commands that Ctrl-C ends with one line, at any moment. If --op is missing before
    an op, the refusal says what to type."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        with _stoppable():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        with _stoppable():
            try:
                return super().invoke(ctx)
            except _UsageError as error:
                _suggest_option(error)
                raise


def _suggest_option(error: Any) -> None:
    """Name the option that an unexpected argument lacks: `measure softmax` means `--op softmax`. A
    path means something else."""
    unexpected = re.match(r"Got unexpected extra argument[()s]* \((.*)\)", error.message)
    command: Any = getattr(error.ctx, "command", None)
    takes_op = any("--op" in option.opts for option in getattr(command, "params", ()))
    if unexpected and takes_op and not set("./:") & set(unexpected[1]):
        options = " ".join(f"--op {name}" for name in unexpected[1].split())
        error.message += f": write refkernels {command.name} {options}."


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        stop("refkernels: stopped.")
