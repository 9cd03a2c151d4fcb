"""Names: which edits have a cause of their own.

`names.json` is a table: an edit of a kind, at a place where the details are as given, has the cause
of the first entry that fits; what the table lacks is named by its kind, with the formula of its
place. A `*` in an entry stands for any text. An entry may keep only some details, or give them
other names; a `usual` one is tried without a search (`usual`), in the `outputs` that it changes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from importlib import resources
from typing import Any


@functools.cache
def _table() -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath("names.json").read_text(encoding="utf-8")
    table: list[dict[str, Any]] = json.loads(text)
    return table


def fits(entry: Mapping[str, Any], kind: str, details: Mapping[str, Any]) -> bool:
    """Whether an entry is about an edit with these details."""
    return entry["kind"] == kind and all(
        fnmatchcase(str(details.get(name)), wanted)
        if isinstance(wanted, str)
        else details.get(name) == wanted
        for name, wanted in entry.get("where", {}).items()
    )


def usual(where: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The usual entries for an op and a pass; of the forward pass, if they name none."""
    for entry in _table():
        wanted = {"pass": "forward", **entry.get("where", {})}
        if entry.get("usual") and all(
            fnmatchcase(where[key], wanted.get(key, "*")) for key in where
        ):
            yield entry


def named(
    kind: str, details: Mapping[str, Any], where: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """The cause of an edit, and the details that its words need. `where`: the op and the passes."""
    for entry in _table():
        if fits(entry, kind, {**details, **where}):
            rename = entry.get("rename", {})
            kept = entry.get("details", [*details])
            taken = rename.values() - rename.keys()
            kept = [name for name in kept if name not in taken]
            return entry["cause"], {rename.get(name, name): details[name] for name in kept}
    return kind, dict(details)


def causes() -> set[str]:
    """The causes of the table."""
    return {entry["cause"] for entry in _table()}


def axis_of(array: tuple[int, ...], seen: tuple[int, ...], axis: int) -> int:
    """Which axis of a user's array an axis is, of the array as the formula sees it: with other axes
    of one element, and leading axes joined."""
    wide, places = ([k for k, n in enumerate(shape) if n > 1] for shape in (array, seen))
    behind = sum(place >= axis % len(seen) for place in places)
    return wide[-behind] if 0 < behind <= len(wide) else axis
