"""What losses share: how the losses of rows become one, and what a wrong denominator is.

    none    l_i              sum    Σ l_i              mean    Σ l_i / D

D is the number of rows, or of those that count, or the sum of their weights. A loss gives the terms
of each row, and a gradient with respect to them; both go through here. Kernels divide the sum or
multiply it by 1 / D, and scale the cotangent before anything else or last.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.wording import shown
from refkernels.op import Direction
from refkernels.ops import Fault, Staged
from refkernels.ops.formula import several
from refkernels.ops.letters import Signature

REDUCTIONS = ("none", "sum", "mean")
EVERYWHERE = "target weights"
"""The inputs that denominators are counted from."""
Bools = npt.NDArray[np.bool_]
Total = Callable[..., Any]  # D, from what `counts` gives
Rows = Callable[..., Any]


def signature(takes: str, coupled: str, reduction: str, direction: Direction) -> Signature:
    """Of a loss with inputs `takes`, by its reduction; the gradient is x's. Raises ValueError for
    what is no reduction."""
    check(reduction)
    return _signature(takes, coupled, reduction, direction)


@functools.cache
def _signature(takes: str, coupled: str, reduction: str, direction: Direction) -> Signature:
    rows, counted = ("...", "") if reduction == "none" else ("", EVERYWHERE)
    way = Signature.parse(f"{takes} -> loss[{rows}]", coupled, counted)
    return way if direction == "forward" else way.backward({"dloss": "loss"}, {"dx": "x"})


def check(reduction: str, *more: str) -> None:
    """Raises ValueError for what is no reduction."""
    if reduction not in (*REDUCTIONS, *more):
        known = ", ".join((*REDUCTIONS, *more))
        raise ValueError(f"reduction is {shown(reduction)}: it is one of {known}.")


def counts(kept: Bools, total: Any = None) -> dict[str, Any]:
    """What denominators are made of, from which rows count: `total`, the right one, the number of
    those by default; `counted`, that number; `rows`, of all; `batch`, the length of the first of
    several axes."""
    counted = int(np.count_nonzero(kept))
    total = counted if total is None else total
    batch = len(kept) if kept.ndim > 1 else None
    return {"total": total, "counted": counted, "rows": kept.size, "batch": batch}


def in_sequence(kept: Bools) -> npt.NDArray[np.int64] | None:
    """The denominator of a mean over sequences of each one's mean: for each row, how many sequences
    there are times how many rows of its own count. None where the rows have no axis of sequences.
    """
    if kept.ndim < 2 or not kept.size:
        return None
    own = np.maximum(np.count_nonzero(kept, axis=-1, keepdims=True), 1)
    return np.broadcast_to(own * (kept.size // kept.shape[-1]), kept.shape)


def _right(total: Any, **_: Any) -> Any:
    return total


def _divided(xp: Any, one: Any, of: Total, given: Mapping[str, Any]) -> Any:
    """By a denominator of all rows; or of each row, which an array is."""
    total = of(**given)
    if isinstance(total, np.ndarray):
        return one / xp.array(total)
    total = xp.lift(given["total"] if total is None else total)
    return xp.either(one / total, one * (1 / total))


def reduced(terms: Rows, of: Total = _right) -> Staged:
    """The loss whose rows are sums of `terms(xp, ...)`: each is reduced by itself, then added."""

    def finish(xp: Any, rows: Any, /, reduction: str, **given: Any) -> Any:
        if reduction == "none":
            return functools.reduce(xp.add, rows)
        apart = isinstance(of(**given), np.ndarray)
        if reduction == "mean" and apart:
            rows = [_divided(xp, row, of, given) for row in rows]
        whole = [xp.sum(row, axis=0) for row in rows]
        if reduction == "mean" and not apart:
            whole = [_divided(xp, one, of, given) for one in whole]
        return functools.reduce(xp.add, whole)

    return Staged(terms, finish)


def joined(terms: Rows) -> Rows:
    """The terms of a row added before they are reduced."""

    def rows(xp: Any, /, **given: Any) -> Any:
        return functools.reduce(xp.add, several(terms(xp, **given)))

    return rows


def scaled(gradient: Rows, of: Total = _right) -> Rows:
    """The gradient of the reduced loss from `gradient(xp, g, ...)`, that of rows whose losses have
    the cotangents g."""

    def backward(xp: Any, /, dloss: Any, reduction: str, **given: Any) -> Any:
        g = _divided(xp, dloss, of, given) if reduction == "mean" else dloss
        return gradient(xp, g, **given)

    return backward


def fault(cause: str, terms: Rows | None, gradient: Rows | None, of: Total = _right) -> Fault:
    """Wrong terms of rows, their gradient, or another denominator."""
    forward = None if terms is None else reduced(joined(terms), of)
    return Fault(cause, forward, None if gradient is None else scaled(gradient, of))


def by(name: str) -> Total:
    """The denominator of that name."""
    return lambda **given: given.get(name)


OTHER_TOTALS: dict[str, Total] = {
    "sum_instead_of_mean": lambda **_: 1,
    "all_rows_denominator": by("rows"),
    "row_count_denominator": by("counted"),
    "batch_denominator": by("batch"),
    "mean_of_means": by("in_sequence"),
}
"""Wrong denominators, by cause: where rows are ignored, weighted, or lie in sequences."""


def wrong_totals(terms: Rows, gradient: Rows, *causes: str) -> tuple[Fault, ...]:
    """Those of these causes."""
    return tuple(fault(cause, terms, gradient, OTHER_TOTALS[cause]) for cause in causes)
