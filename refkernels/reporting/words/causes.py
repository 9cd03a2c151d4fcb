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

from dataclasses import dataclass
from typing import Any

from refkernels.reporting.words.catalogues import LANGUAGES, read_catalogue


@dataclass(frozen=True)
class Cause:
    """One entry of the catalogue."""

    says: dict[str, str]
    todo: dict[str, str]
    sources: tuple[str, ...] = ()
    in_use: bool = False
    switch_of: tuple[str, ...] = ()

    @staticmethod
    def of(entry: dict[str, Any]) -> Cause:
        """From the catalogue."""
        return Cause(
            {lang: entry[lang] for lang in LANGUAGES},
            entry["todo"],
            tuple(entry.get("sources", ())),
            entry.get("in_use", False),
            tuple(entry.get("switch_of", ())),
        )


CAUSES = {name: Cause.of(entry) for name, entry in read_catalogue("causes").items()}
NO_BUG = {
    "en": "Nothing is wrong: compare with a tolerance derived from the inputs "
    "(`refkernels.testing.assert_kernel`), not with equal bits or a fixed number of ULP.",
    "zh": "无需修复：请使用由输入推导的容差（`refkernels.testing.assert_kernel`）比较，"
    "而不要逐位比较，也不要用固定的 ULP 数。",
}


def by_design(cause: str, framework: str) -> bool:
    """Whether a cause is a definition that is in use, or a switch that this framework documents."""
    entry = CAUSES.get(cause)
    return entry is not None and (entry.in_use or framework in entry.switch_of)
