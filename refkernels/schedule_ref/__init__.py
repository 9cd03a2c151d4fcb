"""Learning-rate schedules: the cosine decay, certified at every step.

    cosine_decay, rate      the exact rates, certified; the second with warm-up and other decays
    formula, clipped, …     the cosine decay as frameworks write it, and a bound on its error
    examine, conventions    what given rates are: in their range, of which step convention

A schedule is a function of a whole number of steps and has no gradient: the registry lists no op of
this room.
"""

from refkernels.op import Op
from refkernels.schedule_ref.examination import Examination, examine
from refkernels.schedule_ref.formulas import clipped, formula, formula_bound, through_sine
from refkernels.schedule_ref.oracle import amplification, cosine_decay
from refkernels.schedule_ref.schedules import Convention, Schedule, conventions, rate

__all__ = [
    "OPS",
    "Convention",
    "Examination",
    "Schedule",
    "amplification",
    "clipped",
    "conventions",
    "cosine_decay",
    "examine",
    "formula",
    "formula_bound",
    "rate",
    "through_sine",
]

OPS: tuple[Op, ...] = ()
