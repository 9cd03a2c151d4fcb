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


def of_labels(row: Rows, slope: Rows) -> tuple[Fault, Fault]:
    """The faults of labels that are no class: one of the last classes instead, or ignored."""

    def wrapped(of: Rows, xp: Any, *g: Any, **arguments: Any) -> Any:
        return of(xp, *g, **{**arguments, "valid": None})

    def ignored(of: Rows, xp: Any, *g: Any, valid: Any = None, **arguments: Any) -> Any:
        zero, found = xp.number(0), wrapped(of, xp, *g, **arguments)
        if valid is None:
            return found
        return xp.where(valid, found, zero) if g else tuple(xp.where(valid, x, zero) for x in found)

    of = functools.partial
    return (
        fault("label_wrapped", of(wrapped, row), of(wrapped, slope)),
        fault("invalid_label_ignored", of(ignored, row), of(ignored, slope)),
    )


def loss(
    rows: dict[str, Any], slopes: dict[str, Any], *faults: Fault, totals: tuple[str, ...] = (),
    **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """The arguments of `formula_op` for a loss, from its rows and slopes, of which the first have
    the wrong denominators; "truth" among them is the certified form, by default the first."""
    row, slope = next(iter(rows.values())), next(iter(slopes.values()))
    forms = {name: form if isinstance(form, TwoStage) else reduced(joined(form))
             for name, form in rows.items()}  # fmt: skip
    backward = {name: scaled(form) for name, form in slopes.items()}
    exact = {"truth": forms.pop("truth", None), "backward_truth": backward.pop("truth", None)}
    return {
        "forms": forms,
        "backward": backward,
        "faults": (*wrong_totals(row, slope, *totals), *faults),
        "gradients": ("x",),
        "params": {"reduction": "mean"},
        **exact,
        **more,
    }
