"""The ways to read formulas. This module and the contexts are loaded on first use: an op's letters,
its names and what its elements depend on are known without them.
"""

from __future__ import annotations

import functools
from typing import Any

from refkernels.arithmetic.formats import Format
from refkernels.contexts import least as lowest
from refkernels.contexts.amplification import Amplification
from refkernels.contexts.bound import Bound
from refkernels.contexts.common_errors import CommonErrors, says_little
from refkernels.contexts.composed import Composed, Flushed, NarrowFunctions, OtherFunction
from refkernels.contexts.reachable import Reachable
from refkernels.contexts.signed_zeros import SignedZeros
from refkernels.contexts.tensor_cores import TensorCores
from refkernels.contexts.unstored import Unstored
from refkernels.contexts.working import Working
from refkernels.ops import readings
from refkernels.ops.formula import Formula
from refkernels.ops.readings import Reading, read, read_forms
from refkernels.ops.settle import settle

__all__ = [
    "Reading", "amplification", "bound", "other_working", "reachable", "read", "read_forms",
    "says_little", "settle", "with_common_errors", "working",
]  # fmt: skip


def amplification() -> Reading:
    """The reading that gives an upper bound on the condition number."""
    xp = Amplification()
    return Reading(xp, lambda value: (xp.amplification(value),))


def bound(working: Format, target: Format, **options: Any) -> Reading:
    """The reading that bounds the error of a right kernel, which works in one format and stores in
    another. `options` are those of `Bound`."""
    return readings.bound(Bound(working, target, **options))


def with_common_errors(reading: Reading) -> Reading:
    """The same, with the errors of statistics taken as common (`contexts.common_errors`)."""
    assert isinstance(reading.xp, Bound)
    return readings.bound(CommonErrors.of(reading.xp))


def reachable(working: Format, target: Format, **options: Any) -> Reading:
    """The reading that gives the values which a right kernel may compute where an intermediate
    result leaves its format's range."""
    return readings.reachable(Reachable(working, target, **options))


@functools.lru_cache(1 << 12)
def least(
    forms: tuple[Formula, ...], ends: tuple[float, float], working: Format, target: Format
) -> float:
    """The least that the largest of the forms' bounds may be, over |y|."""
    xp = Bound(working, target)
    rates = (lowest.rate(form, ends, xp) for form in forms)
    return max(rates) * xp.working.unit * (1.0 - 2.0**-20)  # for the roundings of a bound


def unstored(working: Format, target: Format, scalars: Any) -> Reading:
    """The reading that bounds the error of a kernel that stores nothing but its result."""
    return readings.bound(Unstored(working, target, scalars=scalars))


def working(working: Format, target: Format, scalars: Any, **options: Any) -> Reading:
    """The reading that computes the answer of a kernel that works in one format and stores in
    another."""
    return readings.working(Working(working, target, scalars=scalars, **options))


def other_working(arithmetic: str, format: Format, scalars: Any, **options: Any) -> Reading:
    """The reading that computes a kernel's answer in an arithmetic of `ARITHMETICS`."""
    return readings.working(ARITHMETICS[arithmetic](format, scalars=scalars, **options))


ARITHMETICS: dict[str, Any] = {
    "narrow": Working,
    "composed": Composed,
    "narrow functions": NarrowFunctions,
    "other function": OtherFunction,
    "flushed": Flushed,
    "tensor cores": TensorCores,
    "signed zeros": SignedZeros,
}
