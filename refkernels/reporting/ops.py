"""The table of ops, for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

Row = dict[str, Any]


def op_table(rows: list[Row]) -> Group:
    """One line per op; the dtypes below the table if all ops have the same."""
    shared = len({tuple(row["dtypes"]) for row in rows}) == 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    titles = ["op", "inputs", "outputs", "backward", "params", "not in"]
    for title in [*titles, *([] if shared else ["dtypes"])]:
        table.add_column(title, overflow="fold", no_wrap=title == "op")
    for row in rows:
        cells = [*_cells(row), *([] if shared else [", ".join(row["dtypes"])])]
        table.add_row(*[Text(cell) for cell in cells])
    below = f"dtypes: {', '.join(rows[0]['dtypes'])}. " if shared and rows else ""
    return Group(table, Text(f"{below}[name]: may be left out."))


def _cells(row: Row) -> list[str]:
    inputs = [f"[{name}]" if name in row["optional"] else name for name in row["inputs"]]
    params = [name if value is None else f"{name}={value}" for name, value in row["params"].items()]
    absent = [name for name, reason in row["frameworks"].items() if reason is not None]
    return [
        row["op"],
        ", ".join(inputs),
        ", ".join(row["outputs"]),
        ", ".join(row["backward"]["outputs"]),
        ", ".join(params),
        ", ".join(absent),
    ]
