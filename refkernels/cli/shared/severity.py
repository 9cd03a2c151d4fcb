"""--fail-on: makes the exit status depend on the worst output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion
from refkernels.cli.shared.options import one_of
from refkernels.cli.shared.wording import option
from refkernels.records.words import LEVELS

_LEVEL = one_of("--fail-on", *LEVELS[:-1])  # every output reaches the last level
FailOn = Annotated[str | None, option("FailOn", parser=_LEVEL, autocompletion=completion.levels)]


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
