"""Program: which loops over a row a traced formula needs, and what each of them computes.

The arrays of a formula are of four levels in their common shape (..., n): `full`; `row` (..., 1),
a number for each row; `column` (n,), the same in every row; `number`, not an array. Between
two reductions everything is one loop. The *stage* of a term is how many reductions precede it: the
loop of stage s computes what the reductions of full terms of stage s need, and then the row terms
of stage s + 1 follow. A full term that a later stage needs again is computed again where that is
cheap, and `kept` for the row where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.ball import Ball
from refkernels.contexts.context import Context
from refkernels.contexts.trace import Shape, Term, Untraceable, in_order
from refkernels.contexts.value import Mask, Value

NUMBER, ROW, COLUMN, FULL = range(4)
READ = ("array", "truth")
REDUCTIONS = ("sum", "max", "pivot")
CONDITIONS = ("less", "not less", "is", "not", "and", "or")
_COST = {"divide": 4, "function": 12, "where": 3, "maximum": 2}
_DEAR = 4  # a term of this cost or less is cheaper to compute again than to keep


class Program:
    """The analysis of the output terms. Raises Untraceable where rows do not suffice."""

    def __init__(self, outputs: Sequence[Term], arrays: Sequence[npt.NDArray[Any]]) -> None:
        self.outputs = list(outputs)
        self.terms = in_order(self.outputs)
        read = [arrays[term.option] for term in self.terms if term.op in READ]
        try:
            self.shape: Shape = np.broadcast_shapes(*(array.shape for array in read))
        except ValueError:
            raise Untraceable("Arrays without a common shape have no rows.") from None
        if not self.shape:
            raise Untraceable("A formula of numbers alone has no rows.")
        self.level: dict[Term, int] = {}
        self.stage: dict[Term, int] = {}
        for term in self.terms:
            self.level[term] = self._level(term)
            self.stage[term] = self._stage(term)
        for output in self.outputs:
            wanted = {FULL: self.shape, ROW: (*self.shape[:-1], 1)}.get(self.level[output])
            if output.shape != wanted:
                raise Untraceable(f"A result of shape {output.shape} has no rows of {self.shape}.")

    def _level(self, term: Term) -> int:
        if term.op == "opaque":
            raise Untraceable(f"{term.option} has no kernel over rows.")
        if term.op in ("number", "pi", "known"):
            return NUMBER
        if term.op in READ:
            level = self._level_of(term.shape)
            if term.op == "truth" and level == NUMBER:
                raise Untraceable("One truth value for all elements is Python's to decide.")
            return level
        levels = {self.level[operand] for operand in term.operands}
        if term.op in CONDITIONS:
            levels.add(ROW)  # numbers come into kernels as balls, truth values do not
        if term.op in REDUCTIONS or term.op == "pick":
            return ROW
        if term.op == "broadcast":
            levels.add(self._level_of(term.shape))
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

    def _stage(self, term: Term) -> int:
        latest = max((self.stage[operand] for operand in term.operands), default=0)
        return latest + (term.op in REDUCTIONS)

    @property
    def flat(self) -> bool:
        """Whether elements are independent, and rows may be cut anywhere."""
        return not any(
            term.op in (*REDUCTIONS, "pick")
            or (term.op in READ and self.level[term] in (ROW, COLUMN))
            for term in self.terms
        )

    @property
    def reads(self) -> dict[int, int]:
        """The level of every array that loops and row terms read, by its index in the trace."""
        reads = {t.option: self.level[t] for t in self.terms if t.op in (*READ, "pick")}
        return {index: level for index, level in reads.items() if level != NUMBER}

    @property
    def stages(self) -> range:
        return range(max(self.stage.values()) + 1)

    def reductions(self, stage: int) -> list[Term]:
        """The reductions whose operand the loop of that stage computes."""
        return [
            term for term in self.terms if term.op in REDUCTIONS and self.stage[term] == stage + 1
        ]

    def wanted(self, stage: int) -> list[Term]:
        """The loop's purpose at that stage: operands of reductions, results, kept terms."""
        wanted = [term.operands[0] for term in self.reductions(stage)]
        ends = [*self.outputs, *self.kept]
        wanted += [t for t in ends if self.level[t] == FULL and self.stage[t] == stage]
        return list(dict.fromkeys(wanted))

    def loop(self, wanted: Iterable[Term], stage: int) -> list[Term]:
        """The terms that a loop computes, operands first; kept ones are read."""
        needed: dict[Term, None] = {}
        pending = list(wanted)
        while pending:
            term = pending.pop()
            if term in needed or self.level[term] in (NUMBER, ROW):
                continue
            needed[term] = None
            if not (term in self.kept and self.stage[term] < stage):
                pending += term.operands
        return [term for term in self.terms if term in needed]

    @cached_property
    def kept(self) -> list[Term]:
        """Full terms that a later stage uses and that are dear to compute again."""
        later: dict[Term, None] = {}
        for term in self.terms:
            if self.level[term] == FULL:
                for operand in term.operands:
                    if self.level[operand] == FULL and self.stage[operand] < self.stage[term]:
                        later[operand] = None
        return [term for term in later if term.op not in CONDITIONS and self._cost(term) > _DEAR]

    def _cost(self, term: Term) -> int:
        """The cost of the term and of all that its loop computes for it."""
        loop, pending = {term}, [term]
        while pending:
            for operand in pending.pop().operands:
                if operand not in loop and self.level[operand] in (COLUMN, FULL):
                    loop.add(operand)
                    pending.append(operand)
        return sum(_COST.get(part.op, 1) for part in loop if part.op not in ("array", "broadcast"))

    # --- numbers -----------------------------------------------------------------------------

    def numbers(self) -> list[Term]:
        """The number terms that loops and row terms use; they are computed once, beforehand."""
        used = (
            operand
            for term in self.terms
            if self.level[term] != NUMBER
            for operand in term.operands
            if self.level[operand] == NUMBER
        )
        return list(dict.fromkeys(used))


def read(
    terms: Sequence[Term],
    xp: Context,
    arrays: Mapping[int, npt.NDArray[Any]],
    shape_of: Callable[[Term], Shape] = lambda term: term.shape,
) -> list[Value]:
    """The terms in another context, over `arrays` of the same levels. `shape_of` gives the shape
    that a term is broadcast to."""
    values: dict[Term, Any] = {}
    for term in in_order(list(terms)):
        operands = [values[operand] for operand in term.operands]
        match term.op:
            case "array":
                values[term] = xp.array(arrays[term.option])
            case "truth":
                values[term] = np.asarray(arrays[term.option], bool)
            case "pick":
                values[term] = xp.take_along_axis(operands[0], arrays[term.option])
            case "broadcast":
                values[term] = _broadcast(xp, operands[0], shape_of(term))
            case _:
                values[term] = _read(term, xp, operands)
    return [values[term] for term in terms]


def _read(term: Term, xp: Context, operands: list[Any]) -> Any:
    match term.op:
        case "number":
            return xp.number(term.option)
        case "known":
            assert isinstance(xp, Ball)
            return xp.value(*term.option)
        case "function":
            return xp.function(term.option, *operands)
        case "less":
            return xp.less(*operands).yes
        case "not less":
            return xp.less(*operands).no
        case "where":
            return xp.where(Mask(*operands[:2]), *operands[2:])
        case "is":
            return operands[0]
        case "not":
            return ~operands[0]
        case "and":
            return operands[0] & operands[1]
        case "or":
            return operands[0] | operands[1]
        case "opaque":
            raise Untraceable(f"{term.option} is not kept in a graph.")
        case primitive:
            return getattr(xp, primitive)(*operands)


def _broadcast(xp: Context, value: Value, shape: Shape) -> Value:
    """To a shape of more axes, or of fewer where those in front are of length 1."""
    axes, have = len(shape), value.shape
    fitting = have[len(have) - axes :] if len(have) > axes else (1,) * (axes - len(have)) + have
    return xp.broadcast(xp.reshape(value, fitting), shape)
