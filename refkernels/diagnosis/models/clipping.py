"""Clipping by groups: tensors that share a norm, which are neither all of them nor each by itself.

A kernel clips the groups of an optimizer's parameters one by one. The groups are read off: tensors
of one group are scaled by one factor, and what they hold says which norm that factor should have
been of. A tensor that is left alone has a group of its own: its group's norm, whatever that is, is
no larger than the threshold, and so is its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.variants.formulas import answer

_ROUNDINGS = 4  # of the factor, of a product, and of another factor before it


def by_groups(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Each group of tensors clipped by its own norm."""
    got, tensor = outputs.get("clipped"), problem.inputs["tensor"]
    if got is None or got.shape != tensor.shape:
        return
    groups = _groups(_factors(problem.inputs["grads"], got, tensor))
    if groups is None or not 1 < (count := groups.max() + 1) < groups.size:
        return
    grouped = dict(problem.inputs, tensor=groups[tensor])
    found = answer(replace(problem, inputs=grouped), _of_each(problem))
    mine = replace(found, reference={"clipped": found.reference["clipped"]})
    members = [np.flatnonzero(groups == k).tolist() for k in range(count)]
    details = {"groups": "; ".join(", ".join(map(str, group)) for group in members)}
    yield Variant("clipped_per_group", details, mine, price=groups.size * math.log2(count))


def _of_each(problem: Problem) -> Any:
    """The formula that clips each tensor by its own norm: the op's own, or its fault."""
    read = problem.op.formulas
    assert read is not None
    faults = (fault.forward for fault in read.faults if fault.cause == "clipped_per_tensor")
    return next(faults, next(iter(read.way("forward").forms.values())))


def _factors(grads: Array, got: Array, tensor: Array) -> list[tuple[float, float] | None]:
    """What each tensor was multiplied by: the least and the largest factor that its elements leave
    it, None where they leave none. (0, inf) of zeros."""
    format = formats.of(got)
    g, c = to_float64(grads), to_float64(got)
    spread = _ROUNDINGS * format.u * np.abs(c) + format.min_normal * 2.0 * format.u
    with np.errstate(all="ignore"):
        low, high = ((np.abs(c) + side) / np.abs(g) for side in (-spread, spread))
    found: list[tuple[float, float] | None] = []
    for k in range(int(tensor.max(initial=-1)) + 1):
        mine = (tensor == k) & (g != 0.0)
        ends = float(np.max(low[mine], initial=0.0)), float(np.min(high[mine], initial=np.inf))
        one_sign = np.all((np.sign(c) == np.sign(g))[mine] | (c[mine] == 0.0))
        found.append(ends if one_sign and ends[0] <= ends[1] else None)
    return found


def _groups(factors: list[tuple[float, float] | None]) -> Array | None:
    """The group of each tensor: those with one factor that is not 1; zeros are of any. None where a
    tensor has no factor."""
    if not factors or None in factors:
        return None
    groups = np.zeros(len(factors), np.int64)
    last, high = -1, -math.inf
    some = ((*ends, k) for k, ends in enumerate(factors) if ends is not None and ends[1] < math.inf)
    for low, most, k in sorted(some):
        alone = low <= 1.0 <= most
        if alone or low > high:
            last, high = last + 1, -math.inf if alone else most
        groups[k], high = last, min(high, most)
    _, first = np.unique(groups, return_index=True)
    return np.argsort(np.argsort(first))[groups]  # numbered as their first tensors stand
