"""Options that several commands share: their spelling and their limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from refkernels.cli.shared import completion
from refkernels.cli.shared.endings import refuse
from refkernels.cli.shared.wording import argument, option

Names = list[str]
Frameworks = Annotated[Names | None, option("Frameworks", autocompletion=completion.frameworks)]
Ops = Annotated[Names | None, option("Ops", autocompletion=completion.ops)]
Dtypes = Annotated[Names | None, option("Dtypes", autocompletion=completion.dtypes)]
Dtype = Annotated[str, option("Dtype", autocompletion=completion.dtypes)]
Cases = Annotated[Names | None, option("Cases", autocompletion=completion.cases)]
Device = Annotated[str | None, option("Device")]
Settings = Annotated[Names | None, option("Settings", "--set")]
Inputs = Annotated[Names | None, option("Inputs", "--input")]
CaseOrOp = Annotated[str | None, argument("CaseOrOp", autocompletion=completion.ops)]
Oracle = Annotated[str | None, option("Oracle", "--op", "--oracle", autocompletion=completion.ops)]
Params = Annotated[Names | None, option("Params")]
DirectionName = Annotated[str | None, option("DirectionName")]
DrawSeed = Annotated[int, option("DrawSeed", min=0)]
AsJson = Annotated[bool, option("AsJson", "--json")]
Resume = Annotated[bool, option("Resume", "--resume")]
Everything = Annotated[bool, option("Everything", "--all")]


MOST_WORKERS = 512  # processes of one machine
MOST_TRIES = 2**36  # inputs of a search: a day's work of many cores
MOST_ELEMENTS = 2**26  # in an array that a command makes
MOST_SECONDS = 7 * 24 * 3600.0
MOST_SEED = 2**63 - 1


def case_or_oracle(case_or_op: str | None, oracle: str | None) -> str:
    """What is asked about; ends with status 2 unless one of both is given, or a case file with the
    oracle that it is about."""
    about = case_or_op is not None and case_or_op.endswith(".npz") and oracle is not None
    if not about and (case_or_op is None) == (oracle is None):
        refuse("Give CASE.npz, an op or --oracle FILE.py:NAME; both for a case about that one.")
    return case_or_op or str(oracle)


def one_of(option: str, *choices: str) -> Callable[[str], str]:
    """The parser of an option that takes one of some words; ends with status 2 for any other."""

    def word(text: str) -> str:
        from refkernels.suggestion import did_you_mean

        if text not in choices:
            refuse(f"{option} {text!r} is unknown: {did_you_mean(text, choices)}.")
        return text

    return word


Language = Annotated[str, option("Language", parser=one_of("--lang", "en", "zh"))]


def seconds(text: str | float) -> float:
    """A time limit: a number of seconds from 0.1 to a week. Raises typer.BadParameter."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.1 <= value <= MOST_SECONDS:
        raise typer.BadParameter(f"{text!r} is not a number from 0.1 to {MOST_SECONDS:g}.")
    return value


Timeout = Annotated[float, option("Timeout", parser=seconds)]


def parse_settings(settings: list[str] | None) -> dict[str, str]:
    """NAME=VALUE pairs as a dict; ends with status 2 for anything else."""
    pairs: dict[str, str] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals or not name:
            refuse(f"--set {setting!r} is not NAME=VALUE.")
        pairs[name] = value
    return pairs


def read_lengths(option: str, text: str, like: str, least: int = 1) -> tuple[str, tuple[int, ...]]:
    """The name and lengths of NAME=LENGTH,LENGTH; ends with status 2 for anything else."""
    name, _, values = text.partition("=")
    lengths = tuple(int(v) if v.strip().isdecimal() else -1 for v in values.split(","))
    if not name or min(lengths) < least:
        refuse(f"{option} {text!r} is not NAME=LENGTH,LENGTH, such as {like}.")
    return name, lengths
