"""The ways to read formulas; loaded with the contexts on first use.

An op's letters, its names and what its elements depend on are known without any of this.
"""

from __future__ import annotations

from typing import Any

from refkernels.arithmetic.formats import Format
from refkernels.contexts.amplification import Amplification
from refkernels.contexts.bound import Bound
from refkernels.contexts.remembering import Remembering
from refkernels.contexts.working import Working
from refkernels.ops import readings
from refkernels.ops.readings import Reading, read
from refkernels.ops.settle import settle

__all__ = ["Reading", "amplification", "bound", "read", "settle", "working"]


def amplification() -> Reading:
    """The reading that gives at least the condition number."""
    xp = Amplification()
    return Reading(xp, lambda value: (xp.amplification(value),))


def bound(working: Format, target: Format, scalars: Any, remember: bool = False) -> Reading:
    """The reading that bounds a right kernel's error, working in one format, storing in another.
    `remember`: for several formulas, which share what they have in common."""
    context = Remembering if remember else Bound
    return readings.bound(context(working, target, scalars=scalars))


def working(working: Format, target: Format, scalars: Any, **options: Any) -> Reading:
    """The reading that gives such a kernel's answer."""
    return readings.working(Working(working, target, scalars=scalars, **options))
