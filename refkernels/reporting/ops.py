"""The table of ops, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

Row = dict[str, Any]
_GAP = 1  # characters between two columns
_INDENT = 2  # of the cells of an op, where they are below each other
_TITLES = ("op", "inputs", "outputs", "backward", "params", "not in", "dtypes")
_DROPPED = ("backward", "dtypes", "outputs", "not in")  # in this order, until the others fit


def op_table(rows: list[Row], width: int) -> Group:
    """One line per op, wrapped between words. Columns for which a screen of `width` characters has
    no room are left out; on a very narrow screen, an op's cells are below each other. The dtypes
    are below the table if all ops have the same."""
    columns = _columns(rows)
    below = ""
    if len({tuple(row["dtypes"]) for row in rows}) == 1:
        below = f"dtypes: {columns.pop('dtypes')[0]}. "
    left_out = []
    for name in _DROPPED:
        if name in columns and _total(_narrowest(columns)) > width:
            left_out.append(name)
            del columns[name]
    note = f" A wider screen also shows: {', '.join(left_out)}." if left_out else ""
    below = f"{below}[name]: may be left out.{note}"
    if _total(_narrowest(columns)) > width:
        return Group(*_stacked(columns), Text(below))
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for name, size in _widths(columns, width).items():
        table.add_column(name, width=size, overflow="fold")
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, cells))
    return Group(table, Text(below))


def _stacked(columns: dict[str, list[str]]) -> Iterator[RenderableType]:
    """For each op its name and, indented below it, its other cells with their titles."""
    for name, *cells in zip(*columns.values(), strict=True):
        yield Text(name, style="bold")
        for title, cell in zip(list(columns)[1:], cells, strict=True):
            if cell:
                yield Padding(Text(f"{title}: {cell}"), (0, 0, 0, _INDENT))


def _columns(rows: list[Row]) -> dict[str, list[str]]:
    """The texts of each column, by its title."""
    cells = [_cells(row) for row in rows]
    return {title: [", ".join(by_title[title]) for by_title in cells] for title in _TITLES}


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
    for _ in range(width - _total(widths)):
        name = max(widths, key=lambda name: longest[name] / widths[name])
        if longest[name] > widths[name]:
            widths[name] += 1
    return widths


def _narrowest(columns: dict[str, list[str]]) -> dict[str, int]:
    """The length of each column's longest word; the title is one."""
    return {
        title: max(len(word) for word in (title, *" ".join(texts).split()))
        for title, texts in columns.items()
    }


def _total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)
