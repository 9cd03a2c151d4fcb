"""Docstrings for the site (mkdocs.yml): their columns of names and meanings as lists.

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
    inside = False
    for line in text.splitlines():
        row, more = _ROW.fullmatch(line), _MORE.fullmatch(line)
        if row:
            lines += ([] if inside else [""]) + [f"- `{row['name']}`: {row['meaning']}"]
            inside = True
        elif inside and more:
            lines.append(f"    {more['meaning']}")
        else:
            lines += ["", line] if inside and line else [line]
            inside = False
    return "\n".join(lines)


class Columns(griffe.Extension):
    """Every docstring that is rendered."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = listed(obj.docstring.value)
