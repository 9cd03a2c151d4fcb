"""Views of the records: the terminal table, Markdown, one HTML page, plots.

Every view is a pure function of the records: the same records give the same bytes. Each is imported
on first use, because a failing assertion needs a few words, not a plotting library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refkernels.reporting.measure.terminal import environment_table, terminal_table
    from refkernels.reporting.measure.writing import write_report
    from refkernels.reporting.reading import RecordsError, read_records
    from refkernels.reporting.sweep.pages import write_sweep_report
    from refkernels.reporting.sweep.terminal import sweep_table

_HOMES = {
    "measure.terminal": ("environment_table", "terminal_table"),
    "measure.writing": ("write_report",),
    "reading": ("RecordsError", "read_records"),
    "sweep.pages": ("write_sweep_report",),
    "sweep.terminal": ("sweep_table",),
}

__all__ = [
    "RecordsError", "environment_table", "read_records", "sweep_table", "terminal_table",
    "write_report", "write_sweep_report",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
