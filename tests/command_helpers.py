"""Helpers for the tests of commands."""

from typing import Any

from typer.testing import CliRunner

from refkernels.cli.app import app


def said(*arguments: object, **options: Any) -> Any:
    """What the command does with the arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def refused(result: Any) -> str:
    """The one sentence of a refusal."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith("refkernels: ")
    return sentence.removeprefix("refkernels: ")
