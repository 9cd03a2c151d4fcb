"""What stands elsewhere: the rows of an output in another order, two outputs or two of an output's
axes in each other's place, the op along another axis."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.edits.indices import by_parts, changes_of
from refkernels.diagnosis.edits.names import named
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem

_NAN, _INFINITE = 5.0, 3.0  # their substitutes, where the largest number is 1
_MOST_ROWS = 2048  # up to here, all distances are computed
_NEAR = 2.0**-6  # relative: an element that is another one, rounded
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
        price = math.lgamma(len(rows) + 1.0) / math.log(2.0)  # one of all orders
        if order is None:
            order, price = _rotation(rows, targets), math.log2(len(rows))
        if moved := int(np.count_nonzero(order != np.arange(len(order)))):
            places = np.arange(right.size).reshape(right.shape)[order]
            yield Variant("permuted", {"rows": moved}, answer.taken(name, places), price=price)


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


SWAPPED_GRADIENTS = ("dweight", "dbias")


def exchanged_outputs(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Two outputs of one shape and format in each other's place, each with a bound somewhere."""
    truth = problem.truth
    bounded = [name for name in truth.reference if (truth.bound[name] < math.inf).any()]
    for pair in itertools.combinations(bounded, 2):
        kinds = {(truth.reference[name].shape, problem.format_of(name)) for name in pair}
        if len(kinds) == 1 and set(pair) & set(outputs):
            cause, details = named("outputs_exchanged", {"outputs": ", ".join(pair)}, {})
            whole: Any = truth.reference, truth.bound, truth.plain
            exchanged: Any = (dict(zip(pair, (p[pair[1]], p[pair[0]]), strict=True)) for p in whole)
            yield Variant(cause, details, Answer(*exchanged))


def other_axis(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Every other axis of x that gives outputs of the same shapes. Along an axis of length 1 an op
    gives a constant or x itself, for which there are other reasons."""
    axis, x = {**problem.op.params, **problem.params}.get("axis"), problem.inputs.get("x")
    if problem.op.formulas is None or x is None or not isinstance(axis, int | np.integer):
        return
    names = problem.op.names("forward") if problem.direction == "forward" else ("dy",)
    arrays = outputs if problem.direction == "forward" else problem.inputs
    keeps = all(arrays[name].shape == x.shape for name in names if name in arrays)
    reduced = [x.shape[:k] + x.shape[k + 1 :] for k in range(x.ndim)]
    for alternative, length in enumerate(x.shape):
        fits = keeps or reduced[alternative] == reduced[axis]
        if alternative != axis % x.ndim and length > 1 and fits:
            with contextlib.suppress(ValueError):  # another input does not fit this axis
                answer = problem.ask(params={"axis": alternative})
                yield Variant("wrong_axes", {"axes": [alternative]}, answer)


def moved_outputs(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The elements of an output in other places, in an array of its own shape: two axes exchanged,
    as where heads are merged, halves for pairs, a reversed axis. The way that puts most elements
    right is answered."""
    for name, got in outputs.items():
        right = np.asarray(problem.truth.reference[name])
        if got.shape != right.shape or not got.size:
            continue
        own, wide = np.arange(got.size).reshape(got.shape), to_float64(got)
        ways = list[tuple[str, dict[str, Any], Array]]()
        for pair in itertools.combinations([k for k, n in enumerate(got.shape) if n > 1], 2):
            exchanged = own.swapaxes(*pair).reshape(got.shape)
            ways.append(("axes_exchanged", {"axes": [*pair]}, exchanged))
        for how, axis, change in (*changes_of(got.shape), *by_parts(got.shape)):
            if how in ("first", "last"):
                continue  # so it is where an input is read so
            ways.append(("output_moved", {"output": name, "how": how, "axis": axis}, change(own)))
        shares = [share_near(wide, right.flat[places]) for _, _, places in ways]
        if shares and max(shares) > 0.5:
            cause, details, places = ways[int(np.argmax(shares))]
            yield Variant(cause, details, problem.truth.taken(name, places), trials=len(ways))


def share_near(got: Doubles, answer: Array) -> float:
    """The share of elements that are near those of an answer of the same shape."""
    with np.errstate(all="ignore"):
        return float(np.mean(np.abs(got - answer) <= _NEAR * np.abs(got)))
