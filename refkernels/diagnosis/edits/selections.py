"""Selections: an array, or a result, that is read in place of another of its shape; a part that was
taken for a constant; the other branch, a bound left out, a mask that nobody asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.contexts.graph import Node, Replacement, apply
from refkernels.diagnosis.edits.catalogue import Program, by, is_number, only, rule, through

_NEAREST = 12  # of a loop's many steps
_MOVING = ("move", "broadcast", "pick", "scatter_add")  # with indices of their own


@rule("inputs_exchanged", "index")  # f(x, y) -> f(y, x)
def exchanged_inputs(program: Program) -> Iterator[Any]:
    for a, b in itertools.combinations(program.inputs, 2):
        if a.shape == b.shape:
            changes = {to: only(replace(of), to.shape) for to, of in ((a, b), (b, a))}
            yield a, changes, {"part": a, "other": b}


@rule("other_input", "variable")  # f(x, y) -> f(y, y), y = x rstd -> x; g² -> m², of a result m
def other_variables(program: Program) -> Iterator[Any]:
    """Everywhere, or wherever a result is known by then; and in one place."""
    number = {node: k for k, node in enumerate(program.graph.nodes)}
    given = [node for node in program.nodes if through(node) in program.inputs]
    results = [node for node in dict.fromkeys(program.graph.outputs) if node and node not in given]
    for node in (node for node in program.nodes if node.shape):
        others = [other for other in (*given, *results) if other.shape == node.shape]
        others.sort(key=lambda other: abs(number[other] - number[node]))
        for other in (o for o in others[:_NEAREST] if through(o) is not through(node)):
            details, users = {"part": node, "other": other}, program.users.get(node, [])
            if other in given or number[other] < number[node]:
                yield node, {node: only(replace(other), node.shape)}, details
            else:
                users = [user for user in users if number[user] > number[other]]
            reads = {user: _reads(user, node, other) for user in users if user.op not in _MOVING}
            if len(reads) < len(users) or len(reads) > 1:
                yield from ((node, {user: reads[user]}, {**details, "use": user}) for user in reads)
            if number[other] > number[node] and reads:
                yield node, reads, {**details, "every": len(reads)}


def _reads(user: Node, node: Node, other: Node) -> Replacement:
    """A node that reads another in place of one of its operands."""
    operands = tuple(other if operand is node else operand for operand in user.operands)
    return Replacement(operands, lambda xp, *values: apply(user, xp, values))


@rule("stop_gradient", "gradient")  # f(g(x)) with g(x) constant
def stopped(program: Program) -> Iterator[Any]:
    for node in program.nodes:
        if not is_number(node) and node.op not in ("array", "pivot", "item", "welford"):
            yield node, {node: by(node)(lambda xp, v: xp.stop(v))}, {"part": node}
    reductions = list(program.of("mean", "sum", "norm"))
    if len(reductions) > 1:
        stopped = {node: by(node)(lambda xp, v: xp.stop(v)) for node in reductions}
        yield reductions[-1], stopped, {"part": reductions[-1], "every": len(stopped)}


@rule("bound_missing", "threshold")  # max(a, b) -> a
def missing_bounds(program: Program) -> Iterator[Any]:
    for node in program.of("maximum"):
        for kept, missing in itertools.permutations(node.operands):
            yield node, {node: only(kept, node.shape)}, {"part": missing}


@rule("branch_differs", "threshold")  # where(c, a, b) -> a, b, where(c, b, a)
def other_branches(program: Program) -> Iterator[Any]:
    for node in program.of("where"):
        yes, no, *branches = node.operands
        for kept, missing in itertools.permutations(branches):
            yield node, {node: only(kept, node.shape)}, {"part": missing}
        exchanged = {to: only(replace(of), to.shape) for to, of in ((yes, no), (no, yes))}
        yield node, exchanged, {"part": node}


@rule("mask_added", "threshold")  # e[i, j] -> 0 for j > i: causal, though nobody asked
def added_masks(program: Program) -> Iterator[Any]:
    for node in program.functions("exp"):
        if len(node.shape) < 2 or min(node.shape[-2:]) < 2:
            continue
        for how, kept in _diagonals(*node.shape[-2:]):
            keep = np.broadcast_to(kept, node.shape)
            masked = by(node)(lambda xp, e, keep=keep: xp.where(keep, e, xp.number(0)))
            yield node, {node: masked}, {"how": how}


def _diagonals(m: int, n: int) -> Iterator[tuple[str, Any]]:
    """The elements of (m, n) that masks along the diagonal keep."""
    for how, corner in (("top_left", 0), ("bottom_right", n - m)):
        yield how, np.tri(m, n, corner, bool)
        yield f"{how}, strictly", np.tri(m, n, corner - 1, bool)
    for window in (2**k for k in range(1, n.bit_length()) if 2**k < n):
        behind = ~np.tri(m, n, -window, bool)
        yield f"i - j < {window}", behind
        yield f"|i - j| < {window}", behind & np.tri(m, n, window - 1, bool)
