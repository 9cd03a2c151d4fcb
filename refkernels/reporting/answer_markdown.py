"""Pieces of Markdown that an answer is made of."""

from __future__ import annotations

from refkernels.reporting.numerals import clipped


def folded(title: str, body: str) -> str:
    """What is shown on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def grid(columns: str, rows: list[list[str]], sides: str) -> str:
    """A Markdown table; `sides`: l for a column of words, - for one of numbers."""
    marks = {"l": "---", "-": "--:"}
    lines = [f"| {columns} |", f"|{'|'.join(marks[side] for side in sides)}|"]
    return "\n".join([*lines, *[f"| {' | '.join(row)} |" for row in rows]])


def escaped(text: str, length: int = 400) -> str:
    """Text in which Markdown and HTML see nothing, on one line."""
    line = clipped(text, length)
    for mark in "\\`*_[]|#~":
        line = line.replace(mark, "\\" + mark)
    return line.replace("<", "&lt;").replace(">", "&gt;")
