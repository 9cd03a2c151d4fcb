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
