"""Sweeps: every input of a format through a framework and through the oracle, counted exactly.

`run` holds sweep() itself, `crew` who works on it, `chunk` one piece of the work (`judging` its
kernels, `tally` what it counts), `search` what is done where a format has too many inputs.
"""

from refkernels.sweeps.crew import Crew, CrewError, Dask, Lent, Processes
from refkernels.sweeps.journal import JournalError
from refkernels.sweeps.patterns import RangeError
from refkernels.sweeps.run import Plan, Progress, plan, sweep

__all__ = [
    "Crew", "CrewError", "Dask", "JournalError", "Lent", "Plan", "Processes", "Progress",
    "RangeError", "plan", "sweep",
]  # fmt: skip
