"""Learning-rate schedules: the cosine decay, certified at every step.

    cosine_decay(step, min_lr=, max_lr=, decay_steps=) -> Enclosure
    formula, clipped, through_sine     the schedule as frameworks write it, in the working precision
    formula_bound(...)                 the bound on the formula's error, from its cosine's error
    examine(lr, step, ...)             ULP errors, and whether min_lr <= lr <= max_lr, lr falls
    rate(step, Schedule(...))          warm-up and decay, certified: `schedules`
    conventions(lr, step, Schedule)    which step convention rates follow, the nearest first

A schedule is a function of a whole number of steps and has no gradient. No adapter runs it as an
op, and the registry lists no op of this room.
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
