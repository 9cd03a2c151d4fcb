"""Selections: the other branch, a bound left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.diagnosis.edits.catalogue import Program, by, only, rule


@rule("bound_missing", "threshold")  # max(a, b) -> a
def missing_bounds(program: Program) -> Iterator[Any]:
    for node in program.of("maximum"):
        a, b = node.operands
        yield node, {node: only(a, node.shape)}, {"part": b}
        yield node, {node: only(b, node.shape)}, {"part": a}


@rule("branch_differs", "threshold")  # where(c, a, b) -> a, b, where(c, b, a)
def other_branches(program: Program) -> Iterator[Any]:
    for node in program.of("where"):
        yes, no, a, b = node.operands
        yield node, {node: only(a, node.shape)}, {"part": b}
        yield node, {node: only(b, node.shape)}, {"part": a}
        exchanged = {yes: by(replace(no))(_same), no: by(replace(yes))(_same)}
        yield node, exchanged, {"part": node}


@rule("mask_added", "threshold")  # e[i, j] -> 0 for j > i: causal, though nobody asked
def added_masks(program: Program) -> Iterator[Any]:
    for node in program.functions("exp"):
        if len(node.shape) < 2 or min(node.shape[-2:]) < 2:
            continue
        m, n = node.shape[-2:]
        for how, corner in (("top_left", 0), ("bottom_right", n - m)):
            for strict in (0, 1):
                keep = np.broadcast_to(np.tri(m, n, corner - strict, bool), node.shape)
                masked = by(node)(lambda xp, e, keep=keep: xp.where(keep, e, xp.number(0)))
                yield node, {node: masked}, {"how": how, "strict": bool(strict)}


def _same(xp: Any, value: Any) -> Any:
    return value
