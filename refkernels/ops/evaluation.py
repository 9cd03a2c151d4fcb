"""The ways to read formulas. This module and the contexts are loaded on first use: an op's letters,
its names and what its elements depend on are known without them.
"""

from __future__ import annotations

import functools
from typing import Any

from refkernels.arithmetic.formats import Format, working_format
from refkernels.contexts import least as lowest
from refkernels.contexts.amplification import Amplification
from refkernels.contexts.bound import Bound, Unstored
from refkernels.contexts.common_errors import CommonErrors, says_little
from refkernels.contexts.composed import Composed
from refkernels.contexts.reachable import Reachable
from refkernels.contexts.signed_zeros import SignedZeros
from refkernels.contexts.tensor_cores import TensorCores
from refkernels.contexts.working import RoundedArithmetic
from refkernels.ops.formula import Formula
from refkernels.ops.readings import Reading, bound, reachable, read, read_forms
from refkernels.ops.readings import working as computed_in
from refkernels.ops.refine import refine

__all__ = [
    "Bound", "CommonErrors", "Reachable", "Unstored", "amplification", "bound", "computed_in",
    "least", "reachable", "read", "read_forms", "refine", "says_little", "working",
]  # fmt: skip


def amplification() -> Reading:
    """The reading that gives an upper bound on the condition number."""
    xp = Amplification()
    return Reading(xp, lambda value: (xp.amplification(value),))


@functools.lru_cache(1 << 12)
def least(
    forms: tuple[Formula, ...], ends: tuple[float, float], working: Format, target: Format
) -> tuple[float, float]:
    """The least that the largest of the forms' bounds may be: over |y|, and in all."""
    xp = Bound(working, target)
    found, less = [lowest.least(form, ends, xp) for form in forms], 1.0 - 2.0**-20  # for roundings
    return max(f.rate for f in found) * xp.working.unit * less, max(f.floor for f in found) * less


def working(arithmetic: Any, format: Format, scalars: Any, **options: Any) -> Reading:
    """The reading that computes a kernel's answer, 16 bits in binary32; or in an arithmetic of
    `ARITHMETICS`, or in that context."""
    xp = arithmetic
    if not isinstance(arithmetic, RoundedArithmetic):
        xp = ARITHMETICS[arithmetic](format, scalars=scalars, **options)
    return computed_in(xp)


ARITHMETICS: dict[str, Any] = {
    "": lambda format, **how: RoundedArithmetic(working_format(format), format, **how),
    "narrow": RoundedArithmetic,
    "composed": Composed,
    "tensor cores": TensorCores,
    "signed zeros": SignedZeros,
}
