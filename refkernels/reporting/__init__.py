"""Views of the records: the terminal table, Markdown, one HTML page, plots.

Every view is a pure function of the records: the same records give the same bytes.
"""

from __future__ import annotations

from refkernels.reporting.measure.terminal import environment_table, terminal_table
from refkernels.reporting.measure.writing import write_report
from refkernels.reporting.reading import RecordsError, read_records
from refkernels.reporting.sweep.pages import write_sweep_report
from refkernels.reporting.sweep.terminal import sweep_table

__all__ = [
    "RecordsError", "environment_table", "read_records", "sweep_table", "terminal_table",
    "write_report", "write_sweep_report",
]  # fmt: skip
