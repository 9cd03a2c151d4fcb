"""Clipping by other norms: of groups of tensors, or one that does not count every tensor once.

The tensors of one group are scaled by one factor, that of their common norm. A tensor that is not
scaled counts as a group of its own: its group's norm does not exceed the threshold, nor does its
own. Where one factor scales all tensors, it determines the norm that the kernel took: without the
tensors of other ranks, stages or experts, or with those that every rank holds, once per rank.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.hypothesis import Variant, scaled
from refkernels.diagnosis.problem import Answer, Array, Arrays, Problem
from refkernels.diagnosis.variants.formulas import answer

_ROUNDINGS = 4  # of the factor, of a product, and of another factor before it
_TIMES = (0, 2, 4, 8)  # how many times each tensor of a range counts
_MOST_TENSORS = 32  # of more tensors, some range has nearly any norm
_CHANCE = 2.0**-10  # the largest probability that a meaningless norm is one of those tried


def by_groups(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Each group of tensors clipped by its own norm."""
    got, tensor = outputs.get("clipped"), problem.inputs["tensor"]
    if got is None or got.shape != tensor.shape:
        return
    groups = _groups(_factors(problem.inputs["grads"], got, tensor))
    if groups is None or not 1 < (count := groups.max() + 1) < groups.size:
        return
    # The formula that clips each tensor by its own norm is the op's own, or its fault.
    faults = (f.forward for f in problem.faults if f.cause == "clipped_per_tensor")
    formula = next(faults, problem.definition.first("forward"))
    asked = replace(problem, inputs={**problem.inputs, "tensor": groups[tensor]})
    full_answer = answer(asked, formula)
    clipped = replace(full_answer, reference={"clipped": full_answer.reference["clipped"]})
    members = [np.flatnonzero(groups == k).tolist() for k in range(count)]
    details = {"groups": "; ".join(", ".join(map(str, group)) for group in members)}
    yield Variant("clipped_per_group", details, clipped, price=groups.size * math.log2(count))


def by_other_tensors(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """All tensors clipped by one norm in which a range of them counts several times, or not."""
    got, tensor, params = outputs.get("clipped"), problem.inputs["tensor"], problem.params
    if got is None or got.shape != tensor.shape or params["norm_type"] != 2.0:
        return
    factors = _factors(problem.inputs["grads"], got, tensor)
    ends = [factor for factor in factors if factor is not None]
    low, high = max((end[0] for end in ends), default=0.0), min((end[1] for end in ends), default=0)
    if not 0.0 < low <= high < 1.0 or len(ends) <= int(tensor.max(initial=-1)):
        return
    added, max_norm = params["eps"] if params["way"] == "eps" else 0.0, params["max_norm"]
    squares = np.bincount(tensor, np.square(to_float64(problem.inputs["grads"])))
    if not 1 < squares.size <= _MOST_TENSORS:  # of one tensor there is no other range
        return
    counts = _counts(squares.size)
    norms = np.sqrt(np.asarray(counts) @ squares)
    room = (_ROUNDINGS + math.sqrt(tensor.size)) * problem.format.u
    matching = (norms * (1 + room) + added >= max_norm / high) & (
        norms * (1 - room) + added <= max_norm / low
    )
    if np.count_nonzero(matching) != 1 or len(counts) * (2 * room + high / low - 1) > _CHANCE:
        return
    (chosen,) = np.flatnonzero(matching)
    details = {"counts": ", ".join(map(str, counts[chosen]))}
    answer = _by_norm(
        problem, float(norms[chosen]), math.sqrt(float(np.sum(squares))), added, max_norm
    )
    # The evidence is a single number, and worth no more than its digits.
    price = float(problem.format.p)
    yield Variant("norm_of_other_tensors", details, answer, trials=len(counts), price=price)


def _counts(tensors: int) -> list[tuple[int, ...]]:
    """How often each tensor counts: a range of tensors, or all others, not exactly once."""
    counts = set()
    for start, stop in itertools.combinations(range(tensors + 1), 2):
        inside = (np.arange(tensors) >= start) & (np.arange(tensors) < stop)
        for times, members in itertools.product(_TIMES, (inside, ~inside)):
            counts.add(tuple(np.where(members, times, 1).tolist()))
    return sorted(count for count in counts if len(set(count)) > 1)  # else it is a factor


def _by_norm(problem: Problem, norm: float, right: float, added: float, max_norm: float) -> Answer:
    """The answer with another norm."""
    ratio = min(1.0, max_norm / (norm + added)) / min(1.0, max_norm / (right + added))
    clipped, own = scaled(problem, "clipped", ratio), scaled(problem, "norm", norm / right)
    bound, plain = {**clipped.bound, **own.bound}, {**clipped.plain, **own.plain}
    return Answer({**clipped.reference, **own.reference}, bound, plain, invariant=False)


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
