"""Measuring: cases -> oracle, cases -> frameworks -> ULP -> records.

`plan` lists the units, `unit` and `invariance` measure one of them, `journal` keeps finished units
so that a stopped run can resume, `run` is `measure()` itself.
"""

from refkernels.runs.measurement.plan import Plan, select
from refkernels.runs.measurement.run import RunOutcome, measure
from refkernels.runs.progress import Progress

__all__ = ["Plan", "Progress", "RunOutcome", "measure", "select"]
