"""`refkernels report`: tables and pages from existing records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from refkernels.cli.shared import pages
from refkernels.cli.shared.options import Everything, Language
from refkernels.cli.shared.wording import argument
from refkernels.records.files import exists


def report(
    directory: Annotated[Path, argument("report.directory")],
    lang: Language = "en",
    everything: Everything = False,
) -> None:
    """Make every table, plot and page again from the records."""
    swept = exists(directory / "sweeps.jsonl")
    if exists(directory / "records.jsonl") or not swept:
        pages.show_measured(directory, lang, everything)
    if swept:
        pages.show_swept(directory)
