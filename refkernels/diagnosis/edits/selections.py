"""Selections: the other branch, a bound left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

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


def _same(xp: Any, value: Any) -> Any:
    return value
