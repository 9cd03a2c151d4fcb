"""Pieces of Markdown that an answer is made of."""

from __future__ import annotations


def folded(title: str, body: str) -> str:
    """What is shown on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def grid(columns: str, rows: list[list[str]], sides: str) -> str:
    """A Markdown table; `sides`: l for a column of words, - for one of numbers."""
    marks = {"l": "---", "-": "--:"}
    lines = [f"| {columns} |", f"|{'|'.join(marks[side] for side in sides)}|"]
    return "\n".join([*lines, *[f"| {' | '.join(row)} |" for row in rows]])
