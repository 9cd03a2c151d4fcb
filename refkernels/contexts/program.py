"""RowProgram: which loops over a row a recorded formula needs, and what each of them computes.

The arrays of a formula are of four levels in their common shape (..., n): `full`; `row` (..., 1),
a number for each row; `column` (n,), the same in every row; `number`, not an array. Between
two reductions everything is one loop. The *stage* of a node is how many reductions precede it: the
loop of stage s computes what the reductions of full nodes of stage s need, and then the row nodes
of stage s + 1 follow. A full node that a later stage needs again is computed again where that is
cheap, and `kept` for the row where it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.graph import Node, Shape, Untraceable, in_order

NUMBER, ROW, COLUMN, FULL = range(4)
NUMBERS = ("number", "pi", "known")
READ = ("array", "truth")
REDUCTIONS = ("sum", "max", "pivot")
CONDITIONS = ("less", "not less", "is", "not", "and", "or")
_ELEMENTWISE = (
    *("add", "multiply", "divide", "negative", "absolute", "square", "maximum"),
    *("function", "where", "pick", "broadcast"),
)
_OVER_ROWS = frozenset((*NUMBERS, *READ, *REDUCTIONS, *CONDITIONS, *_ELEMENTWISE))
_COST = {"divide": 4, "function": 12, "where": 3, "maximum": 2}
_DEAR = 4  # a node of this cost or less is cheaper to compute again than to keep


class RowProgram:
    """The analysis of the output nodes. Raises Untraceable where rows do not suffice."""

    def __init__(self, outputs: Sequence[Node], arrays: Sequence[npt.NDArray[Any]]) -> None:
        self.outputs = list(outputs)
        self.nodes = in_order(self.outputs)
        read = [arrays[node.option] for node in self.nodes if node.op in READ]
        try:
            self.shape: Shape = np.broadcast_shapes(*(array.shape for array in read))
        except ValueError:
            raise Untraceable("Arrays without a common shape have no rows.") from None
        if not self.shape:
            raise Untraceable("A formula of numbers alone has no rows.")
        self.level: dict[Node, int] = {}
        self.stage: dict[Node, int] = {}
        for node in self.nodes:
            self.level[node] = self._level(node)
            self.stage[node] = self._stage(node)
        for output in self.outputs:
            wanted = {FULL: self.shape, ROW: (*self.shape[:-1], 1)}.get(self.level[output])
            if output.shape != wanted:
                raise Untraceable(f"A result of shape {output.shape} has no rows of {self.shape}.")

    def _level(self, node: Node) -> int:
        if node.op in NUMBERS:
            return NUMBER
        if node.op not in _OVER_ROWS or (node.op in REDUCTIONS and node.option != -1):
            raise Untraceable(f"{node.option or node.op} has no kernel over rows.")
        if node.op in READ:
            level = self._level_of(node.shape)
            if node.op == "truth" and level == NUMBER:
                raise Untraceable("One truth value for all elements is Python's to decide.")
            return level
        levels = {self.level[operand] for operand in node.operands}
        if node.op in CONDITIONS:
            levels.add(ROW)  # numbers come into kernels as balls, truth values do not
        if node.op in REDUCTIONS or node.op == "pick":
            return ROW
        if node.op == "broadcast":
            levels.add(self._level_of(node.shape))
        return FULL if {ROW, COLUMN} <= levels else max(levels)

    def _level_of(self, shape: Shape) -> int:
        """The level of an array; one that fits none is copied to the full shape."""
        padded = (1,) * (len(self.shape) - len(shape)) + tuple(shape)
        if padded == self.shape:
            return FULL
        if all(length == 1 for length in padded):
            return NUMBER
        if padded == (*self.shape[:-1], 1):
            return ROW
        if all(length == 1 for length in padded[:-1]):
            return COLUMN
        return FULL

    def _stage(self, node: Node) -> int:
        latest = max((self.stage[operand] for operand in node.operands), default=0)
        return latest + (node.op in REDUCTIONS)

    @property
    def flat(self) -> bool:
        """Whether elements are independent, and rows may be cut anywhere."""
        return not any(
            node.op in (*REDUCTIONS, "pick")
            or (node.op in READ and self.level[node] in (ROW, COLUMN))
            for node in self.nodes
        )

    @property
    def reads(self) -> dict[int, int]:
        """The level of every array that loops and row nodes read, by its number in the record."""
        reads = {t.option: self.level[t] for t in self.nodes if t.op in (*READ, "pick")}
        return {index: level for index, level in reads.items() if level != NUMBER}

    @property
    def stages(self) -> range:
        return range(max(self.stage.values()) + 1)

    def reductions(self, stage: int) -> list[Node]:
        """The reductions whose operand the loop of that stage computes."""
        return [
            node for node in self.nodes if node.op in REDUCTIONS and self.stage[node] == stage + 1
        ]

    def wanted(self, stage: int) -> list[Node]:
        """The loop's purpose at that stage: operands of reductions, results, kept nodes."""
        wanted = [node.operands[0] for node in self.reductions(stage)]
        ends = [*self.outputs, *self.kept]
        wanted += [t for t in ends if self.level[t] == FULL and self.stage[t] == stage]
        return list(dict.fromkeys(wanted))

    def loop(self, wanted: Iterable[Node], stage: int) -> list[Node]:
        """The nodes that a loop computes, operands first; kept ones are read."""
        needed: dict[Node, None] = {}
        pending = list(wanted)
        while pending:
            node = pending.pop()
            if node in needed or self.level[node] in (NUMBER, ROW):
                continue
            needed[node] = None
            if not (node in self.kept and self.stage[node] < stage):
                pending += node.operands
        return [node for node in self.nodes if node in needed]

    @cached_property
    def kept(self) -> list[Node]:
        """Full nodes that a later stage uses and that are dear to compute again."""
        later: dict[Node, None] = {}
        for node in self.nodes:
            if self.level[node] == FULL:
                for operand in node.operands:
                    if self.level[operand] == FULL and self.stage[operand] < self.stage[node]:
                        later[operand] = None
        return [node for node in later if node.op not in CONDITIONS and self._cost(node) > _DEAR]

    def _cost(self, node: Node) -> int:
        """The cost of the node and of all that its loop computes for it."""
        loop, pending = {node}, [node]
        while pending:
            for operand in pending.pop().operands:
                if operand not in loop and self.level[operand] in (COLUMN, FULL):
                    loop.add(operand)
                    pending.append(operand)
        return sum(_COST.get(part.op, 1) for part in loop if part.op not in ("array", "broadcast"))

    def numbers(self) -> list[Node]:
        """The number nodes that loops and row nodes use; they are computed once, beforehand."""
        used = (
            operand
            for node in self.nodes
            if self.level[node] != NUMBER
            for operand in node.operands
            if self.level[operand] == NUMBER
        )
        return list(dict.fromkeys(used))
