"""Docstrings for the site (mkdocs.yml): columns of names and meanings become lists.

A docstring lists arguments in two columns, the meaning two or more spaces behind the name, and
continues a meaning on indented lines. Markdown would run these together.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROW = re.compile(r"(?P<name>\S+(?:,? \S+)*?) {2,}(?P<meaning>\S.*)")
_MORE = re.compile(r" {4,}(?P<meaning>\S.*)")


def listed(text: str) -> str:
    """The text with every row `name  meaning` as an item of a list."""
    lines: list[str] = []
    in_list = False
    for line in text.splitlines():
        row, continued = _ROW.fullmatch(line), _MORE.fullmatch(line)
        if row:
            lines += ([] if in_list else [""]) + [f"- `{row['name']}`: {row['meaning']}"]
            in_list = True
        elif in_list and continued:
            lines.append(f"    {continued['meaning']}")
        else:
            lines += ["", line] if in_list and line else [line]
            in_list = False
    return "\n".join(lines)


class Columns(griffe.Extension):
    """Converts every docstring that is rendered."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = listed(obj.docstring.value)
