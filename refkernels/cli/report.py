"""`refkernels report`: the views of records that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from refkernels.cli.shared import pages


def report(
    directory: Annotated[
        Path, typer.Argument(help="A folder with records.jsonl, sweeps.jsonl or both.")
    ],
) -> None:
    """Make every table, plot and page again from the records."""
    swept = (directory / "sweeps.jsonl").exists()
    if (directory / "records.jsonl").exists() or not swept:
        pages.show_measured(directory)
    if swept:
        pages.show_swept(directory)
