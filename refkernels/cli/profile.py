"""`refkernels profile`: which calls of a PyTorch program cost its accuracy?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from refkernels.cli.shared import pages
from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.options import AsJson, Language
from refkernels.cli.shared.wording import argument, option


def profile(
    program: Annotated[str, argument("profile.program")],
    arguments: Annotated[list[str] | None, argument("profile.arguments")] = None,
    framework: Annotated[str, option("profile.framework")] = "torch",
    lang: Language = "en",
    as_json: AsJson = False,
    out: Annotated[Path | None, option("profile.out")] = None,
) -> None:
    """Say which calls cost a PyTorch program its accuracy. Tries float64 in their place."""
    from refkernels.profiling.program import of_file

    with refusing(out):
        found = of_file(program, arguments or [], framework)
        written = [] if out is None else found.write(out)
    pages.show(found.record, as_json, found.markdown(lang), written)
