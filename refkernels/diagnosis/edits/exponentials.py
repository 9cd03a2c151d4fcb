"""Exponentials by blocks of terms, as streaming kernels take them: e^(x - m) from the largest term
m up to the end of the block. What was summed before is scaled when m changes.

    S <- S e^(m - m') + sum of e^(x - m')        Y <- Y e^(m - m') + e^(x - m') V

In exact arithmetic nothing changes. What rounds the exponentials, as to the 16 bits of a product's
factors, rounds others. Edits put blocks together wrongly, or splits, each with a softmax of its
own, whose answers are merged by L, the logarithm of the split's sum.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.diagnosis.edits.catalogue import Program, by, only, rule, through
from refkernels.ops.edits import Rule

BLOCKS = (8, 16, 32, 64, 128)  # of terms, or of lanes
_SPLITS, _TILES = (2, 3, 4, 8), (1, 16, 64)  # of whole tiles
_MOST = 8  # blocks, of which one may not be rescaled


def ways(graph: Graph) -> Iterator[Rule]:
    """The rules that write a program so, for each size of blocks."""
    return filter(lambda rule: rule(graph), (functools.partial(_edits, b) for b in BLOCKS[1:]))


def _edits(block: int, graph: Graph) -> Edits:
    """Those of every exponential that is only summed or multiplied with a matrix."""
    program, changes = Program(graph), dict[Node, Replacement]()
    for node, x, among in _shifted(program):
        readers = list(program.readers(node, "where"))
        if node.shape[-1] > block and all(
            r.op in ("sum", "matmul") and r.option in (None, -1) for r in readers
        ):
            changes[node] = by(x, among)(functools.partial(_of_blocks, "", 0, block))
            for reader in readers:
                changes[reader] = by(among, *reader.operands)(functools.partial(_summed, block))
    return changes


def _shifted(program: Program) -> Iterator[tuple[Node, Node, Node]]:
    """exp(x - m), x, and what m is the largest of."""
    for node in program.functions("exp"):
        difference = through(node.operands[0])
        shift = through(difference.operands[-1]) if difference.op == "subtract" else node
        if shift.op in ("pivot", "max") and shift.option in (-1, len(shift.shape) - 1):
            yield node, difference.operands[0], shift.operands[0]


def parts_of(xp: Any, a: Any, length: int, axis: int = -1) -> list[Any]:
    n = a.shape[axis]
    return [xp.take(a, np.arange(k, min(k + length, n)), axis) for k in range(0, n, length)]


def _maxima(block: int, xp: Any, among: Any) -> tuple[list[Any], list[Any]]:
    """Of each block, and so far."""
    own = [xp.stop(xp.max(part)) for part in parts_of(xp, among, block)]
    return own, list(itertools.accumulate(own, xp.maximum))


def _of_blocks(way: str, step: int, block: int, xp: Any, x: Any, among: Any) -> Any:
    """One function: what rounds it rounds all of it."""
    own, so_far = _maxima(block, xp, among)
    last, grown = so_far[-1], so_far[step] - so_far[step - 1]
    once = [last - grown if k < step else last for k in range(len(own))]
    shifts = {"shift_of_each_block": own, "not_rescaled_once": once}.get(way, so_far)
    differences = (part - m for part, m in zip(parts_of(xp, x, block), shifts, strict=True))
    return xp.exp(xp.concatenate([*differences]))


def _summed(block: int, xp: Any, among: Any, e: Any, *matrix: Any) -> Any:
    """The sum of e, or its product with a matrix."""
    total, shifts = None, _maxima(block, xp, among)[1]
    for k, (terms, shift) in enumerate(zip(parts_of(xp, e, block), shifts, strict=True)):
        rows = slice(k * block, (k + 1) * block)
        factors = (xp.rearrange(lambda array, p=rows: array[..., p, :], v) for v in matrix)
        more = xp.matmul(terms, *factors) if matrix else xp.sum(terms)
        total = more if total is None else total * xp.exp(shifts[k - 1] - shift) + more
    return total


def _apart(way: str, program: Program) -> Iterator[Any]:
    """Blocks of which what was summed before is not scaled: never, or but once."""
    for node, x, among in _shifted(program):
        n, once = node.shape[-1], way == "not_rescaled_once"
        for block in (block for block in BLOCKS if block < n):
            several = range(1, -(-n // block)) if 2 * block < n <= _MOST * block else ()
            for step in several if once else (0,):
                blocks = functools.partial(_of_blocks, way, step, block)
                details = {"start": step * block} if once else {"block": block}
                yield node, {node: by(x, among)(blocks)}, details


for _way in ("shift_by_blocks", "shift_of_each_block", "not_rescaled_once"):
    rule(_way, "function")(functools.partial(_apart, _way))

_WEIGHTS = {  # of a split, from its share of the largest sum
    "1": lambda xp, share: xp.number(1),
    "2^L": lambda xp, share: xp.exp(xp.log(share) * xp.log(xp.number(2))),
    "e^(L / ln 2)": lambda xp, share: xp.exp(xp.log(share) / xp.log(xp.number(2))),
    "": lambda xp, share: share,
}


@rule("splits_merged_otherwise", "reduction")  # sum of e^L y / sum of e^L -> sum of 2^L y / ...
def other_weights(program: Program) -> Iterator[Any]:
    exponentials, one = set(program.functions("exp")), Node("number", (), Fraction(1), ())
    for node in (node for node in program.of("sum") if node.option == -1):
        (e,) = node.operands
        terms, n = e.operands if e.op == "where" else (e,), e.shape[-1]
        lengths = {-(-n // (k * tile)) * tile for k in _SPLITS for tile in _TILES}
        shown = exponentials.intersection(map(through, terms))
        for length in sorted(k for k in lengths if k < n and shown):
            for weight, of in _WEIGHTS.items():
                merged = {e: by(e)(functools.partial(_merged, length, of))}
                merged |= {} if weight else {node: only(one, node.shape)}  # not over their sum
                yield node, merged, {"length": str(length), "weight": weight or "e^(L - max L)"}


def _merged(length: int, weight: Any, xp: Any, e: Any) -> Any:
    """Each split's terms over their sum, times its weight; nothing of one without terms."""
    parts = parts_of(xp, e, length)
    sums, merged = [xp.sum(part) for part in parts], []
    largest = functools.reduce(xp.maximum, sums)
    for part, total in zip(parts, sums, strict=True):
        some = xp.less(xp.number(0), total)
        total = xp.where(some, total, largest)
        merged.append(xp.where(some, part / total * weight(xp, total / largest), part))
    return xp.concatenate(merged)
