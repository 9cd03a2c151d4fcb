"""Small trainings of a formula in the project's own arithmetic: null runs, and a demonstration.

`null_runs` makes the runs to which `refkernels align` compares loss curves: runs of one definition
that differ only in rounding. `steps` is a training step.
"""

from refkernels.training.null_runs import null_runs

__all__ = ["null_runs"]
