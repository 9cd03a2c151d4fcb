"""Clipping by groups: the tensors of each group share a norm.

The kernel clips an optimizer's parameter groups one by one. The outputs show the groups, because
all tensors of a group are scaled by one factor, and the oracle clips each group by its own norm. An
unscaled tensor counts as a group of its own: its group's norm does not exceed the threshold, so its
own does not either.
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
    full_answer = answer(replace(problem, inputs=grouped), _per_tensor_formula(problem))
    clipped = replace(full_answer, reference={"clipped": full_answer.reference["clipped"]})
    members = [np.flatnonzero(groups == k).tolist() for k in range(count)]
    details = {"groups": "; ".join(", ".join(map(str, group)) for group in members)}
    yield Variant("clipped_per_group", details, clipped, price=groups.size * math.log2(count))


def _per_tensor_formula(problem: Problem) -> Any:
    """The formula that clips each tensor by its own norm: the op's own, or its fault."""
    formulas = problem.op.formulas
    assert formulas is not None
    faults = (fault.forward for fault in formulas.faults if fault.cause == "clipped_per_tensor")
    return next(faults, next(iter(formulas.way("forward").forms.values())))


def _factors(grads: Array, got: Array, tensor: Array) -> list[tuple[float, float] | None]:
    """The factor of each tensor: the least and the largest that its elements allow, None where they
    allow none; (0, inf) for a tensor of zeros."""
    format = formats.of(got)
    g, c = to_float64(grads), to_float64(got)
    spread = _ROUNDINGS * format.u * np.abs(c) + format.min_normal * 2.0 * format.u
    with np.errstate(all="ignore"):
        low, high = ((np.abs(c) + side) / np.abs(g) for side in (-spread, spread))
    intervals: list[tuple[float, float] | None] = []
    for k in range(int(tensor.max(initial=-1)) + 1):
        members = (tensor == k) & (g != 0.0)
        interval = (
            float(np.max(low[members], initial=0.0)),
            float(np.min(high[members], initial=np.inf)),
        )
        one_sign = np.all((np.sign(c) == np.sign(g))[members] | (c[members] == 0.0))
        intervals.append(interval if one_sign and interval[0] <= interval[1] else None)
    return intervals


def _groups(factors: list[tuple[float, float] | None]) -> Array | None:
    """The group of each tensor: tensors with one factor other than 1 form a group, and zeros fit
    into any. None where a tensor has no factor."""
    if not factors or None in factors:
        return None
    groups = np.zeros(len(factors), np.int64)
    group, high = -1, -math.inf
    finite = (
        (*ends, k) for k, ends in enumerate(factors) if ends is not None and ends[1] < math.inf
    )
    for low, upper, k in sorted(finite):
        alone = low <= 1.0 <= upper
        if alone or low > high:
            group, high = group + 1, -math.inf if alone else upper
        groups[k], high = group, min(high, upper)
    _, first = np.unique(groups, return_index=True)
    return np.argsort(np.argsort(first))[groups]  # numbered in the order of their first tensors
