"""The pieces of Markdown of an answer."""

from __future__ import annotations


def folded(title: str, body: str) -> str:
    """A body that is shown on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def grid(columns: str, rows: list[list[str]], sides: str) -> str:
    """A Markdown table; `sides`: l for a column of words, - for one of numbers."""
    marks = {"l": "---", "-": "--:"}
    lines = [f"| {columns} |", f"|{'|'.join(marks[side] for side in sides)}|"]
    return "\n".join([*lines, *[f"| {' | '.join(row)} |" for row in rows]])
