"""The help of options and arguments: data (`wording.json`), by COMMAND.PARAMETER, or by the name
that several commands share; with the form of the value before it, unless there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

HELP: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def option(about: str, *names: str, **limits: Any) -> Any:
    """An option with its help. `names`: unless it is the parameter's own."""
    return typer.Option(*names, **_help(about) | limits)


def argument(about: str, **limits: Any) -> Any:
    """An argument with its help."""
    return typer.Argument(**_help(about) | limits)


def _help(about: str) -> dict[str, Any]:
    text = HELP[about]
    return {"help": text} if isinstance(text, str) else {"metavar": text[0], "help": text[1]}
