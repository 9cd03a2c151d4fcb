"""Execution: how the balls of a formula are computed, by the size of its arrays.

Small arrays are read by NumPy's `Ball`, with nothing to compile; up to GENERATED elements in blocks
of rows that stay in the cache, on the threads that Numba may use. Larger arrays go to a generated
kernel, compiled once for a formula and kept. Formulas that are not graphs over rows (products of
matrices, sums over other axes) are read by NumPy as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refkernels.arithmetic.blocks import CACHED, spread
from refkernels.arithmetic.mode import in_default_mode
from refkernels.contexts import generated
from refkernels.contexts.ball import Ball
from refkernels.contexts.ball import parts as ball_parts
from refkernels.contexts.generated import Balls, CutRows, arguments, outputs_of, recorded
from refkernels.contexts.graph import Node, Shape, Untraceable, read
from refkernels.contexts.program import FULL, NUMBER, ROW

GENERATED = 100_000


@in_default_mode
def read_ball(formula: Callable[..., Any], *arrays: Any, **params: Any) -> Balls:
    """(mid, radius) of every output of formula(xp, *arrays, **params).

    Arrays of floats reach the formula as values, others unchanged.
    """
    size = max((np.size(array) for array in arrays), default=0)
    if size > CACHED:
        try:
            if size >= GENERATED:
                return generated.of(formula, *arrays, **params).balls()
            return _in_blocks(CutRows(recorded(formula, arrays, params)))
        except Untraceable:
            pass
    xp = Ball()
    values = outputs_of(formula(xp, *arguments(xp, arrays), **params))
    return [ball_parts(value) for value in values]


def _in_blocks(cut_rows: CutRows) -> Balls:
    program, balls = cut_rows.program, cut_rows.empty()
    flat = [(mid.reshape(-1), radius.reshape(-1)) for mid, radius in balls]
    numbers = {k: x for k, x in cut_rows.arrays.items() if k not in program.reads}

    def work(first: int, last: int) -> None:
        start, stop = cut_rows.elements(first, last)
        rows = (1, stop - start) if program.flat else (last - first, cut_rows.width)
        levels = program.reads.values()
        parts = zip(cut_rows.part(first, last), levels, strict=True)
        shaped = [x.reshape(_shape(level, rows)) for x, level in parts]
        arrays = numbers | dict(zip(program.reads, shaped, strict=True))

        def shape_of(node: Node) -> Shape:
            return _shape(program.level[node], rows)

        results = read(program.outputs, Ball(), arrays, shape_of=shape_of)
        places = zip(flat, cut_rows.places(first, last), results, program.outputs, strict=True)
        for (mid, radius), at, result, node in places:
            a, p = ball_parts(result)
            shape = shape_of(node)
            mid[at] = np.broadcast_to(a, shape).reshape(-1)
            radius[at] = np.broadcast_to(p, shape).reshape(-1)

    spread(cut_rows.rows, work, cut_rows.block(CACHED))
    return balls


def _shape(level: int, rows: Shape) -> Shape:
    """A level's shape in a block."""
    if level == NUMBER:
        return ()
    return rows if level == FULL else (rows[0], 1) if level == ROW else (1, rows[1])
