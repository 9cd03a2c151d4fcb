"""Names: which edits have a cause of their own.

`names.json` is a table: an edit of a kind, at a place where the details are as given, has the cause
of the first entry that fits; what the table lacks is named by its kind, with the formula of its
place. An entry may keep only some details, or give them other names.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any


@functools.cache
def _table() -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath("names.json").read_text(encoding="utf-8")
    table: list[dict[str, Any]] = json.loads(text)
    return table


def named(kind: str, details: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The cause of an edit, and the details that its words need."""
    for entry in _table():
        where = entry.get("where", {})
        if entry["kind"] == kind and all(details.get(name) == is_ for name, is_ in where.items()):
            rename = entry.get("rename", {})
            kept = entry.get("details", [*details])
            return entry["cause"], {rename.get(name, name): details[name] for name in kept}
    return kind, dict(details)


def causes() -> set[str]:
    """The causes of the table."""
    return {entry["cause"] for entry in _table()}
