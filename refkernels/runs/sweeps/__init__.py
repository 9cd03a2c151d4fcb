"""Sweeps: every input of a format through a framework and through the oracle, counted exactly.

`run` holds sweep() itself, `pool` the workers, `chunk` one piece of the work (`judging` its
kernels, `tally` its counts), `search` the search of a format with too many inputs to try them all.
Names are imported on first use, so that the workers can start before the rest is imported.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refkernels.runs.sweeps.patterns import RangeError
    from refkernels.runs.sweeps.pool import Dask, ExternalExecutor, PoolError, Processes, WorkerPool
    from refkernels.runs.sweeps.run import Progress, SweepPlan, plan, sweep

_HOMES = {
    "pool": ("WorkerPool", "PoolError", "Dask", "ExternalExecutor", "Processes"),
    "patterns": ("RangeError",),
    "run": ("Progress", "SweepPlan", "plan", "sweep"),
}

__all__ = [
    "Dask",
    "ExternalExecutor",
    "PoolError",
    "Processes",
    "Progress",
    "RangeError",
    "SweepPlan",
    "WorkerPool",
    "plan",
    "sweep",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
