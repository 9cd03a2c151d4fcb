"""The ways in which formulas are read; loaded with the contexts when one is first asked for.

What an op is made of (letters, names, on what an element depends) is known without any of this.
"""

from __future__ import annotations

from typing import Any

from refkernels.arithmetic.formats import Format
from refkernels.contexts.amplification import Amplification
from refkernels.contexts.bound import Bound
from refkernels.contexts.working import Working
from refkernels.ops import readings
from refkernels.ops.readings import Reading, read
from refkernels.ops.settle import settle

__all__ = ["Reading", "amplification", "bound", "read", "settle", "working"]


def amplification() -> Reading:
    """At least the condition number."""
    xp = Amplification()
    return Reading(xp, lambda value: (xp.amplification(value),))


def bound(working: Format, target: Format, scalars: Any) -> Reading:
    """How far a right kernel may be off that works in one format and stores in another."""
    return readings.bound(Bound(working, target, scalars=scalars))


def working(working: Format, target: Format, scalars: Any, **options: Any) -> Reading:
    """What such a kernel answers."""
    return readings.working(Working(working, target, scalars=scalars, **options))
