"""Measuring: cases -> oracle, cases -> frameworks -> ULP -> records.

`instruction_sets` adds targets for `--isa`, `plan` lists the units, `unit` and `invariance` measure
one of them, `judges` chooses the process that judges it, `journal` keeps finished units so that a
stopped run can resume, `run` is `measure()` itself.
"""

from refkernels.runs.measurement.instruction_sets import with_instruction_sets
from refkernels.runs.measurement.plan import Plan, select
from refkernels.runs.measurement.run import FRAMEWORKS, RunOutcome, measure
from refkernels.runs.progress import Progress

__all__ = [
    "FRAMEWORKS",
    "Plan",
    "Progress",
    "RunOutcome",
    "measure",
    "select",
    "with_instruction_sets",
]
