"""The table of ops, for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

Row = dict[str, Any]
_GAP = 1  # characters between two columns
_DROPPED = ("backward", "dtypes", "outputs", "not in")  # in this order, until the others fit


def op_table(rows: list[Row], width: int) -> Group:
    """One line per op, wrapped between words. Columns for which a screen of `width` characters has
    no room are left out; on a very narrow screen, an op's cells are below each other. The dtypes
    are below the table if all ops have the same."""
    cells = list(map(_cells, rows))
    columns = {title: [", ".join(row[title]) for row in cells] for title in cells[0]}
    below = ""
    if len(set(columns["dtypes"])) == 1:
        below = f"dtypes: {columns.pop('dtypes')[0]}. "
    left_out = []
    for name in _DROPPED:
        if name in columns and _room(columns, width) < 0:
            left_out.append(name)
            del columns[name]
    note = f" A wider screen also shows: {', '.join(left_out)}." if left_out else ""
    note = f"{below}[name]: may be left out.{note}"
    lines = list(zip(*columns.values(), strict=True))
    if _room(columns, width) < 0:
        titles = ["", *[f"\n  {name}: " for name in columns][1:]]
        return Group(*(
            Text("".join(t + cell for t, cell in zip(titles, line, strict=True) if cell))
            for line in lines
        ), Text(note))  # fmt: skip
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for name, size in _widths(columns, width).items():
        table.add_column(name, width=size, overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    return Group(table, Text(note))


def _cells(row: Row) -> dict[str, list[str]]:
    """The words of each of an op's cells, by the title of the column."""
    return {
        "op": [row["op"]],
        "inputs": [f"[{name}]" if name in row["optional"] else name for name in row["inputs"]],
        "outputs": row["outputs"],
        "backward": row["backward"]["outputs"],
        "params": [
            name if value is None else f"{name}={value}" for name, value in row["params"].items()
        ],
        "not in": [name for name, reason in row["frameworks"].items() if reason is not None],
        "dtypes": row["dtypes"],
    }


def _widths(columns: dict[str, list[str]], width: int) -> dict[str, int]:
    """The width of each column: that of its longest word at least. The room that is left goes to
    the columns that wrap most."""
    widths = _narrowest(columns)
    longest = {name: max(map(len, [name, *texts])) for name, texts in columns.items()}
    for _ in range(_room(columns, width)):
        name = max(widths, key=lambda name: longest[name] / widths[name])
        widths[name] += longest[name] > widths[name]
    return widths


def _narrowest(columns: dict[str, list[str]]) -> dict[str, int]:
    """The length of each column's longest word; the title is one."""
    return {
        title: max(len(word) for word in (title, *" ".join(texts).split()))
        for title, texts in columns.items()
    }


def _room(columns: dict[str, list[str]], width: int) -> int:
    """How many characters the narrowest columns leave."""
    return width - sum(_narrowest(columns).values()) - _GAP * (len(columns) - 1)
