"""Generated kernels: a formula's balls by one fused Numba kernel, in parallel over blocks of rows.

    kernel = generated.of(softmax, x)            # records it; raises Untraceable
    ((mid, radius),) = kernel.balls()

Params enter as balls, so that another learning rate or step compiles nothing. mids have the bits of
NumPy's `Ball`, except for the middle of a hull (a maximum, an open choice, the square of a ball
around 0), which follows the radii. Radii differ by their own roundings, and are infinite in a few
more places (`ball_functions`). No result depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.blocks import read_only, spread
from refkernels.contexts import loading
from refkernels.contexts.ball import Ball, BallValue
from refkernels.contexts.ball_rules import SPAN
from refkernels.contexts.context import Context
from refkernels.contexts.graph import Untraceable, read
from refkernels.contexts.program import COLUMN, FULL, RowProgram
from refkernels.contexts.record import Record, node_of
from refkernels.contexts.value import Value
from refkernels.contexts.writer import Writer

BLOCK = 1 << 17
"""Elements that a thread takes at a time: Python spends 50 us on a block, and holds its lock."""

Array = npt.NDArray[Any]
Balls = list[tuple[Array, Array]]
Task = Callable[[int, int, Balls], None]


def arguments(xp: Context, arrays: Sequence[Any]) -> list[Any]:
    """A formula's arguments: floats are the context's, integers and truth values stay arrays."""
    as_arrays = [np.asarray(array) for array in arrays]
    return [array if array.dtype.kind in "iub" else xp.array(array) for array in as_arrays]


def outputs_of(result: Any) -> list[Value]:
    """A formula's results as a list."""
    return [result] if isinstance(result, Value) else list(result)


def of(formula: Callable[..., Any], *arrays: Any, **params: Any) -> Generated:
    """The kernel of formula(xp, *arrays, **params). Raises Untraceable."""
    xp = Record(derived=False)
    outputs = outputs_of(formula(xp, *arguments(xp, arrays), **params))
    return Generated(outputs, getattr(formula, "__name__", "a formula"))


class Generated:
    """Outputs of a record with their kernel, ready to run on rows.

    `width` counts the elements of a row, `size` all elements, `rows` the rows. Rows are those of
    the arrays' common shape where the formula reduces rows or has one number for each, else any
    SPAN elements.
    Raises Untraceable.
    """

    def __init__(self, outputs: Sequence[Value], title: str = "a formula") -> None:
        record = outputs[0].context
        assert isinstance(record, Record)
        self.program = RowProgram([node_of(output) for output in outputs], record.arrays)
        self.size = int(np.prod(self.program.shape))
        if not self.size:
            raise Untraceable("There is nothing to compute.")
        self.width = SPAN if self.program.flat else self.program.shape[-1]
        self.rows = -(-self.size // self.width)
        self.inputs = [_input(record.arrays[k], level, self) for k, level in self._reads]
        used = self.program.numbers()
        balls = [_pair(number) for number in read(used, Ball(), record.arrays)]
        self.numbers = np.array(balls).reshape(-1, 2)
        exact = {node for node, (_, radius) in zip(used, balls, strict=True) if radius == 0.0}
        writer = Writer(self.program, exact)
        self.kernel = loading.kernel(title, writer.source())
        self.scratch = list(writer.scratch.values())

    @property
    def _reads(self) -> list[tuple[int, int]]:
        return list(self.program.reads.items())

    def part(self, first: int, last: int) -> list[Array]:
        """The parts of the inputs that the rows [first, last) need."""
        start, stop = self.elements(first, last)
        return [
            x[start:stop] if level == FULL else x if level == COLUMN else x[first:last]
            for x, (_, level) in zip(self.inputs, self._reads, strict=True)
        ]

    def elements(self, first: int, last: int) -> tuple[int, int]:
        """The first and the last index of those rows' elements."""
        return first * self.width, min(last * self.width, self.size)

    def empty(self) -> Balls:
        """Uninitialised arrays for the results, in their shapes."""
        shape = self.program.shape
        full = [self.program.level[node] == FULL for node in self.program.outputs]
        shapes = [shape if is_full else (*shape[:-1], 1) for is_full in full]
        return [(np.empty(shape), np.empty(shape)) for shape in shapes]

    def places(self, first: int, last: int) -> list[slice]:
        """The slice of each flat output that holds the rows' results."""
        full = slice(*self.elements(first, last))
        levels = [self.program.level[node] for node in self.program.outputs]
        return [full if level == FULL else slice(first, last) for level in levels]

    def balls(self, task: Task | None = None) -> Balls:
        """(mid, radius) of every output, in its shape, contiguous.

        task(first, last, balls) gets the flat balls of each block of rows while they are in the
        cache, and may change them; in any order and on several threads.
        """
        results = self.empty()
        flat = [(mid.reshape(-1), radius.reshape(-1)) for mid, radius in results]

        def work(first: int, last: int) -> None:
            places = zip(flat, self.places(first, last), strict=True)
            block = [(mid[at], radius[at]) for (mid, radius), at in places]
            self._run(first, last, block)
            if task is not None:
                task(first, last, block)

        spread(self.rows, work, max(1, BLOCK // self.width))
        return results

    def _run(self, first: int, last: int, balls: Balls) -> None:
        start, stop = self.elements(first, last)
        lengths = {"kept": self.width, "span": SPAN, "spans": -(-self.width // SPAN)}
        scratch = [np.empty(lengths[kind]) for kind in self.scratch]
        flat = [part for pair in balls for part in pair]
        numbers = last - first, self.width, stop - start, self.numbers
        self.kernel(*numbers, *self.part(first, last), *scratch, *flat)


def _input(array: Array, level: int, rows: Generated) -> Array:
    """Flat, contiguous, read-only, of float32, float64, truth values or indices."""
    if array.dtype.kind in "iu":
        array = array.astype(np.int64)
    elif array.dtype not in (bool, np.float32, np.float64) or not array.dtype.isnative:
        array = array.astype(np.float32) if array.dtype.itemsize == 2 else to_float64(array)
    if level == FULL:
        array = np.broadcast_to(array, rows.program.shape)
    return read_only(np.ascontiguousarray(array).reshape(-1))


def _pair(value: Any) -> tuple[float, float]:
    assert isinstance(value, BallValue)
    return float(value.mid.reshape(())), float(value.radius.reshape(()))
