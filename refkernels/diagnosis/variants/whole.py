"""Variants of a whole output, whatever the op: a factor, a sign, another order of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.diagnosis.hypothesis import Variant, scaled
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem

_NEAR = 2.0**-6  # a factor is looked for where most elements agree on one to this
_MOST_ROWS = 2048  # whose distances are all computed
_LARGEST = 4096  # denominators and numerators of a factor that anybody would have meant


def scale_factor(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """One factor on all of an output: the median of got / z, made a ratio of small whole numbers.

    -1 is a cause of its own: `sign_error`. What the factor is (a number of rows, of features) is
    told in `details["named"]`.
    """
    for name, got in outputs.items():
        reference = problem.truth.reference[name]
        factor = _median_ratio(got, np.asarray(reference))
        if factor is None or abs(factor - 1.0) < _NEAR:
            continue
        nice = nearest_ratio(factor)
        if nice is None:
            continue
        value = float(nice)
        cause = "sign_error" if value == -1.0 else "scale_factor"
        details = {"factor": str(nice), "named": _named(nice, problem)}
        yield Variant(cause, details, scaled(problem, name, value))


def permuted(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The rows of an output in another order: each row is looked for among the right ones."""
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
        moved = Answer(
            {name: taken(answer.reference[name], order)},
            {name: answer.bound[name][order]},
            {name: answer.plain[name][order]},
        )
        yield Variant("permuted", {"rows": int(np.sum(order != np.arange(len(order))))}, moved)


def taken(reference: Enclosure, order: Array) -> Enclosure:
    """The rows of an Enclosure in another order."""
    return reference[order]


def nearest_ratio(factor: float) -> Fraction | None:
    """p, 1 / p, p / 2 or 2^k next to the factor, None where it is next to none of them."""
    if factor == 0.0 or not math.isfinite(factor):
        return None
    size = abs(factor)
    sign = 1 if factor > 0 else -1
    candidates = [Fraction(max(round(size), 1)), Fraction(1, max(round(1 / size), 1))]
    candidates += [Fraction(max(round(2 * size), 1), 2), Fraction(2) ** round(math.log2(size))]
    best = min(candidates, key=lambda ratio: abs(float(ratio) / size - 1.0))
    if max(best.numerator, best.denominator) > _LARGEST * _LARGEST or best == 1 == sign:
        return None
    return sign * best if abs(float(best) / size - 1.0) < _NEAR else None


def _median_ratio(got: Array, right: Doubles) -> float | None:
    """The median of got / z over the larger half of |z|, None where there is nothing to divide."""
    wide = got.astype(np.float64)
    usable = np.isfinite(wide) & np.isfinite(right) & (right != 0.0)
    if not usable.any():
        return None
    sizes = np.abs(right[usable])
    large = sizes >= np.median(sizes)
    with np.errstate(over="ignore"):
        return float(np.median(wide[usable][large] / right[usable][large]))


def _named(factor: Fraction, problem: Problem) -> str:
    """Which number of the problem the factor, or its inverse, is: "rows", "x.shape[1]"."""
    number = max(abs(factor.numerator), abs(factor.denominator))
    for name, array in problem.inputs.items():
        for axis, length in enumerate(array.shape):
            if length == number:
                return f"{name}.shape[{axis}]"
        if array.size == number:
            return f"{name}.size"
    return ""


def _matching_rows(got: Doubles, right: Doubles) -> Array | None:
    """For each row of got the row of right that is nearest, None unless that is a permutation.

    Very many rows are told apart by one random projection, as sorting numbers is cheap.
    """
    if not (np.isfinite(got).all() and np.isfinite(right).all()):
        return None
    scale = np.max(np.abs(right)) or 1.0
    mine, theirs = got / scale, right / scale
    if len(mine) <= _MOST_ROWS:
        distances = np.square(theirs).sum(axis=1) - 2.0 * (mine @ theirs.T)
        order: Array = np.argmin(distances, axis=1)
        return order if np.unique(order).size == order.size else None
    direction = np.random.default_rng(0).standard_normal(right.shape[1])
    order = np.empty(len(mine), np.intp)
    order[np.argsort(mine @ direction, kind="stable")] = np.argsort(
        theirs @ direction, kind="stable"
    )
    return order
