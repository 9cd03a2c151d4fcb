"""How a command ends without an answer: by a refusal, or by Ctrl-C."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

_UsageError: Any = typer.BadParameter.__bases__[0]  # of the click that typer uses
STOPPED = 130  # the status that shells give to a command ended by Ctrl-C


def refuse(sentence: str) -> NoReturn:
    """Print why there is no answer, in a sentence, and end with status 2."""
    typer.echo(f"refkernels: {sentence.rstrip('.')}.", err=True)
    raise typer.Exit(2) from None


@contextlib.contextmanager
def refusing(
    path: Path | None = None, also: tuple[type[Exception], ...] = (ValueError, TypeError)
) -> Iterator[None]:
    """Refuse what raises one of our own errors, whose messages are sentences, and what the file
    system refuses. `path`: what an error of the file system is about if it does not say so;
    `also`: nothing where a ValueError would be a bug, not a question."""
    from refkernels.frameworks.catalog import FrameworkError
    from refkernels.records.journal import JournalError

    kinds: tuple[type[Exception], ...] = (FrameworkError, JournalError, *also)
    try:
        yield
    except kinds as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename or path} cannot be read or written ({error.strerror or error})")


def stop(sentence: str) -> NoReturn:
    """Print the state after Ctrl-C, and end with status 130."""
    typer.echo(sentence, err=True)
    raise typer.Exit(STOPPED) from None


@contextlib.contextmanager
def resumable(out: Path) -> Iterator[None]:
    """End after Ctrl-C with what to do: the work in this folder can be continued."""
    try:
        yield
    except KeyboardInterrupt:
        stop(f"Stopped; finished work is kept: add --resume to continue. ({out})")


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
