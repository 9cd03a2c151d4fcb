"""Helpers for the tests of commands."""

from typing import Any


def refused(result: Any) -> str:
    """The one sentence of a refusal."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith("refkernels: ")
    return sentence.removeprefix("refkernels: ")
