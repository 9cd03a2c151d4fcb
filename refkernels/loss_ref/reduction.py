"""The common part of losses: how the losses of rows are reduced, and wrong denominators.

    none    l_i              sum    Σ l_i              mean    Σ l_i / D

D is the number of rows, or of those that count, or the sum of their weights. A loss gives the terms
of each row, and a gradient with respect to them; both are reduced here. Kernels divide the sum or
multiply it by 1 / D, and scale the cotangent first or last.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.wording import shown
from refkernels.op import Direction
from refkernels.ops import Fault, TwoStage
from refkernels.ops.formula import several
from refkernels.ops.letters import Signature

REDUCTIONS = ("none", "sum", "mean")
EVERYWHERE = "target weights"
"""The inputs from which denominators are counted."""
Bools = npt.NDArray[np.bool_]
Total = Callable[..., Any]  # D, from what `counts` gives
Rows = Callable[..., Any]


def signature(takes: str, coupled: str, reduction: str, direction: Direction) -> Signature:
    """The signature of a loss with inputs `takes`, by its reduction; the gradient is x's. Raises
    ValueError for an unknown reduction."""
    check(reduction)
    return _signature(takes, coupled, reduction, direction)


@functools.cache
def _signature(takes: str, coupled: str, reduction: str, direction: Direction) -> Signature:
    rows, counted = ("...", "") if reduction == "none" else ("", EVERYWHERE)
    way = Signature.parse(f"{takes} -> loss[{rows}]", coupled, counted)
    return way if direction == "forward" else way.backward({"dloss": "loss"}, {"dx": "x"})


def check(reduction: Any, *more: str) -> None:
    """Raises ValueError for an unknown reduction."""
    if reduction not in (*REDUCTIONS, *more):
        names = ", ".join((*REDUCTIONS, *more))
        raise ValueError(f"reduction is {shown(reduction)}: it must be one of {names}.")


def counts(kept: Bools, total: Any = None) -> dict[str, Any]:
    """The numbers from which denominators are computed, given the rows that count. `total`: the
    right denominator, by default the number of rows that count; `counted`: that number; `rows`: the
    number of all rows; `batch`: the length of the first of several axes."""
    counted = int(np.count_nonzero(kept))
    total = counted if total is None else total
    batch = len(kept) if kept.ndim > 1 else None
    return {"total": total, "counted": counted, "rows": kept.size, "batch": batch}


def in_sequence(kept: Bools) -> npt.NDArray[np.int64] | None:
    """The denominator of a mean over sequences of each sequence's mean: for each row, the number of
    sequences times the number of its own sequence's rows that count. None where the rows have no
    axis of sequences.
    """
    if kept.ndim < 2 or not kept.size:
        return None
    in_own_sequence = np.maximum(np.count_nonzero(kept, axis=-1, keepdims=True), 1)
    return np.broadcast_to(in_own_sequence * (kept.size // kept.shape[-1]), kept.shape)


def _right(total: Any, **_: Any) -> Any:
    return total


def _divided(xp: Any, numerator: Any, of: Total, arguments: Mapping[str, Any]) -> Any:
    """The numerator over the denominator of all rows, or over each row's own, an array."""
    total = of(**arguments)
    if isinstance(total, np.ndarray):
        return numerator / xp.array(total)
    total = xp.lift(arguments["total"] if total is None else total)
    return xp.either(numerator / total, numerator * (1 / total))


def reduced(terms: Rows, of: Total = _right) -> TwoStage:
    """The loss whose rows are sums of `terms(xp, ...)`: each term is reduced, then they are
    added."""

    def finish(xp: Any, rows: Any, /, reduction: str, **arguments: Any) -> Any:
        if reduction == "none":
            return functools.reduce(xp.add, rows)
        apart = isinstance(of(**arguments), np.ndarray)
        if reduction == "mean" and apart:
            rows = [_divided(xp, row, of, arguments) for row in rows]
        sums = [xp.sum(row, axis=0) for row in rows]
        if reduction == "mean" and not apart:
            sums = [_divided(xp, term, of, arguments) for term in sums]
        return functools.reduce(xp.add, sums)

    return TwoStage(terms, finish)


def joined(terms: Rows) -> Rows:
    """The terms of a row added before they are reduced."""

    def rows(xp: Any, /, **arguments: Any) -> Any:
        return functools.reduce(xp.add, several(terms(xp, **arguments)))

    return rows


def scaled(gradient: Rows, of: Total = _right) -> Rows:
    """The gradient of the reduced loss, from `gradient(xp, g, ...)`, the gradient of rows whose
    losses have the cotangents g."""

    def backward(xp: Any, /, dloss: Any, reduction: str, **arguments: Any) -> Any:
        g = _divided(xp, dloss, of, arguments) if reduction == "mean" else dloss
        return gradient(xp, g, **arguments)

    return backward


def fault(cause: str, terms: Rows | None, gradient: Rows | None, of: Total = _right) -> Fault:
    """Wrong terms of rows, their gradient, or another denominator."""
    forward = None if terms is None else reduced(joined(terms), of)
    return Fault(cause, forward, None if gradient is None else scaled(gradient, of))


def by(name: str) -> Total:
    """The denominator of that name."""
    return lambda **arguments: arguments.get(name)


OTHER_TOTALS: dict[str, Total] = {
    "sum_instead_of_mean": lambda **_: 1,
    "all_rows_denominator": by("rows"),
    "row_count_denominator": by("counted"),
    "batch_denominator": by("batch"),
    "mean_of_means": by("in_sequence"),
}
"""Wrong denominators, by cause: where rows are ignored, weighted, or lie in sequences."""


def wrong_totals(terms: Rows, gradient: Rows, *causes: str) -> tuple[Fault, ...]:
    """The faults of wrong denominators, with these terms and gradient."""
    return tuple(fault(cause, terms, gradient, OTHER_TOTALS[cause]) for cause in causes)
