"""Measuring: cases -> oracle, cases -> frameworks -> ULP -> records.

`plan` says which units there are, `unit` and `invariance` measure one, `store` keeps what is done
so that a stopped run goes on, `run` is `measure()` itself.
"""

from refkernels.runs.measurement.plan import Plan, select
from refkernels.runs.measurement.run import Outcome, measure
from refkernels.runs.progress import Progress

__all__ = ["Outcome", "Plan", "Progress", "measure", "select"]
