"""Variants of a whole output, for any op: another order of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem

_NAN, _INFINITE = 5.0, 3.0  # their substitutes, where the largest number is 1
_MOST_ROWS = 2048  # up to here, all distances are computed


def permuted(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The rows of an output in another order: each row is matched with the nearest right one."""
    for name, got in outputs.items():
        answer = problem.truth
        right = np.asarray(answer.reference[name])
        if got.ndim == 0 or got.shape[0] < 2 or got.size != right.size:
            continue
        order = _matching_rows(
            got.reshape(got.shape[0], -1).astype(np.float64), right.reshape(len(right), -1)
        )
        if order is None or (order == np.arange(len(order))).all():
            continue
        reordered = Answer(
            {name: taken(answer.reference[name], order)},
            {name: answer.bound[name][order]},
            {name: answer.plain[name][order]},
        )
        rows = int(np.sum(order != np.arange(len(order))))
        log2_orders = math.lgamma(len(order) + 1.0) / math.log(2.0)
        yield Variant("permuted", {"rows": rows}, reordered, price=log2_orders)


def taken(reference: Enclosure, order: Array) -> Enclosure:
    """The rows of an Enclosure in another order."""
    return reference[order]


def _matching_rows(got: Doubles, right: Doubles) -> Array | None:
    """For each row of got the nearest row of right, None unless that is a permutation.

    Very many rows are distinguished by one random projection: sorting numbers is cheap.
    """
    scale = np.max(np.abs(right), where=np.isfinite(right), initial=0.0) or 1.0
    with np.errstate(over="ignore"):
        rows, targets = (
            np.nan_to_num(side / scale, nan=_NAN, posinf=_INFINITE, neginf=-_INFINITE)
            for side in (got, right)
        )
    if len(rows) <= _MOST_ROWS:
        with np.errstate(over="ignore", invalid="ignore"):  # answers far too large match no row
            distances = np.square(targets).sum(axis=1) - 2.0 * (rows @ targets.T)
        order: Array = np.argmin(distances, axis=1)
        return order if np.unique(order).size == order.size else None
    direction = np.random.default_rng(0).standard_normal(right.shape[1])
    order = np.empty(len(rows), np.intp)
    order[np.argsort(rows @ direction, kind="stable")] = np.argsort(
        targets @ direction, kind="stable"
    )
    return order
