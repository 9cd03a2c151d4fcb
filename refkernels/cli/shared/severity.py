"""--fail-on: makes the exit status depend on the worst output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion
from refkernels.cli.shared.endings import refuse
from refkernels.cli.shared.wording import option

FailOn = Annotated[str | None, option("FailOn", autocompletion=completion.levels)]


def check(level: str | None) -> None:
    """End with status 2 if --fail-on is not a level."""
    if level is not None:
        from refkernels.records.words import LEVELS
        from refkernels.suggestion import did_you_mean

        if level not in LEVELS[:-1]:
            refuse(f"--fail-on {level!r} is not a level: {did_you_mean(level, LEVELS[:-1])}.")


def reached(level: str | None, judged: Iterable[tuple[str, Mapping[str, Any]]]) -> bool:
    """Whether an output is at that level or worse; prints the first one. `judged`: (name, output
    record) pairs."""
    if level is None:
        return False
    from refkernels.metrology.verdict import reaches

    bad = [
        f"{name}: {output['output']} is {' '.join([output['verdict'], *output['flags']])}"
        for name, output in judged
        if reaches(level, output["verdict"], output["flags"])
    ]
    if bad:
        more = f" and {len(bad) - 1:,} more" if len(bad) > 1 else ""
        typer.echo(f"refkernels: --fail-on {level}: {bad[0]}{more}.", err=True)
    return bool(bad)
