"""The causes that an explanation can name: what each means, and what to do, in two languages.

The identifiers are stable: records, scripts and threads may rely on them. `causes.json` has for
each what it says, by language, which completes "The kernel ..."; `{name}` stands for a number in
the candidate's details; what `todo`; the `sources`, pages that document it; whether the definition
is `in_use` somewhere, and so a choice, not a fault; and the frameworks whose documentation names a
switch for it.

Advice is tested or not given. A switch is named if a test sets it and sees the bits change, or if
its makers' pages document this effect. Advice to the author of a kernel is tested on a kernel that
follows it.
"""

from __future__ import annotations

from refkernels.reporting.words.catalogues import read_catalogue

CAUSES = read_catalogue("causes")
NO_BUG = CAUSES["summation_order"]["todo"]


def by_design(cause: str, framework: str) -> bool:
    """Whether a cause is a definition that is in use, or a switch that this framework documents."""
    entry = CAUSES.get(cause, {})
    return "in_use" in entry or framework in entry.get("switch_of", ())
