"""Variants of a whole output, for any op: another order of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem

_NAN, _INFINITE = 5.0, 3.0  # their substitutes, where the largest number is 1
_MOST_ROWS = 2048  # up to here, all distances are computed
_NEAREST = 8  # rows that the first row of a rotation may be


def permuted(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The rows of an output in another order: each row is matched with the nearest right one. Rows
    that are too near each other for that, as those of a running sum, may have been rotated."""
    for name, got in outputs.items():
        answer = problem.truth
        right = np.asarray(answer.reference[name])
        if got.ndim == 0 or got.shape[0] < 2 or got.size != right.size:
            continue
        rows, targets = _comparable(
            got.reshape(got.shape[0], -1).astype(np.float64), right.reshape(len(right), -1)
        )
        order = _matching_rows(rows, targets)
        matched = order is not None
        order = _rotation(rows, targets) if order is None else order
        if (order == np.arange(len(order))).all():
            continue
        reordered = Answer(
            {name: answer.reference[name][order]},
            {name: answer.bound[name][order]},
            {name: answer.plain[name][order]},
        )
        moved = int(np.sum(order != np.arange(len(order))))
        log2_orders = math.lgamma(len(order) + 1.0) / math.log(2.0)
        price = log2_orders if matched else math.log2(len(order))
        yield Variant("permuted", {"rows": moved}, reordered, price=price)


def _comparable(got: Doubles, right: Doubles) -> tuple[Doubles, Doubles]:
    """The rows of both as finite numbers, scaled so that the largest of `right` is 1."""
    scale = np.max(np.abs(right), where=np.isfinite(right), initial=0.0) or 1.0
    with np.errstate(over="ignore"):
        rows, targets = (
            np.nan_to_num(side / scale, nan=_NAN, posinf=_INFINITE, neginf=-_INFINITE)
            for side in (got, right)
        )
    return rows, targets


def _rotation(rows: Doubles, targets: Doubles) -> Array:
    """The rotation of `targets` that is nearest to `rows`, among those that begin with one of the
    rows nearest to the first."""
    with np.errstate(over="ignore"):  # answers far too large are near no rotation
        starts = np.argsort(np.abs(targets - rows[0]).sum(axis=1), kind="stable")[:_NEAREST]
        distances = [np.abs(rows - np.roll(targets, -start, axis=0)).sum() for start in starts]
    return np.roll(np.arange(len(rows)), -starts[int(np.argmin(distances))])


def _matching_rows(rows: Doubles, targets: Doubles) -> Array | None:
    """For each row the nearest target, None unless that is a permutation.

    Very many rows are distinguished by one random projection: sorting numbers is cheap.
    """
    if len(rows) <= _MOST_ROWS:
        with np.errstate(over="ignore", invalid="ignore"):  # answers far too large match no row
            distances = np.square(targets).sum(axis=1) - 2.0 * (rows @ targets.T)
        order: Array = np.argmin(distances, axis=1)
        return order if np.unique(order).size == order.size else None
    direction = np.random.default_rng(0).standard_normal(targets.shape[1])
    order = np.empty(len(rows), np.intp)
    order[np.argsort(rows @ direction, kind="stable")] = np.argsort(
        targets @ direction, kind="stable"
    )
    return order
