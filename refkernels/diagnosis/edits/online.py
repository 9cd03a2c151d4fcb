"""Exponentials by blocks of terms, as streaming kernels take them: e^(x - m) from the largest term
m up to the end of the block. What was summed before is scaled when m changes.

    S <- S e^(m - m') + sum of e^(x - m')        Y <- Y e^(m - m') + e^(x - m') V

In exact arithmetic nothing changes. What rounds the exponentials, as to the 16 bits of a product's
factors, rounds others.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.diagnosis.edits.catalogue import Program, by, through
from refkernels.ops.edits import Rule

_BLOCKS = (16, 32, 64, 128)


def ways(graph: Graph) -> Iterator[Rule]:
    """The rules that write a program so, for each size of blocks."""
    return filter(lambda rule: rule(graph), (functools.partial(_edits, b) for b in _BLOCKS))


def _edits(block: int, graph: Graph) -> Edits:
    """Those of every exponential that is only summed or multiplied with a matrix."""
    program, changes = Program(graph), dict[Node, Replacement]()
    for node in program.functions("exp"):
        difference = through(node.operands[0])
        if difference.op != "subtract" or node.shape[-1:] <= (block,):
            continue
        shift, readers = through(difference.operands[1]), list(program.readers(node, "where"))
        last = shift.op == "pivot" and shift.option in (-1, len(shift.shape) - 1)
        if last and all(r.op in ("sum", "matmul") and r.option in (None, -1) for r in readers):
            x, among = difference.operands[0], shift.operands[0]
            changes[node] = by(x, among)(functools.partial(_exponentials, block))
            for reader in readers:
                changes[reader] = by(among, *reader.operands)(functools.partial(_summed, block))
    return changes


def _blocks(size: int, block: int) -> list[slice]:
    return [slice(start, min(start + block, size)) for start in range(0, size, block)]


def _part(xp: Any, a: Any, part: slice) -> Any:
    return xp.rearrange(lambda array: array[..., part], a)


def _exponentials(block: int, xp: Any, x: Any, among: Any) -> Any:
    differences = [
        _part(xp, x, part) - xp.pivot(_part(xp, among, slice(part.stop)))
        for part in _blocks(x.shape[-1], block)
    ]
    return xp.exp(xp.concatenate(differences))  # one function: what rounds it rounds all of it


def _summed(block: int, xp: Any, among: Any, e: Any, *matrix: Any) -> Any:
    """The sum of e, or its product with a matrix."""
    total = before = None
    for part in _blocks(e.shape[-1], block):
        shift, terms = xp.pivot(_part(xp, among, slice(part.stop))), _part(xp, e, part)
        factors = (xp.rearrange(lambda array, p=part: array[..., p, :], v) for v in matrix)
        more = xp.matmul(terms, *factors) if matrix else xp.sum(terms)
        total = more if total is None else total * xp.exp(before - shift) + more
        before = shift
    return total
