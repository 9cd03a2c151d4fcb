"""Generated kernels: a formula's balls by one fused Numba kernel, in parallel over blocks of rows.

    reading = generated.reading(softmax, x)         # traces; raises Untraceable
    ((mid, radius),) = reading.balls()

The kernel's source depends on the formula's structure and on which params are exact; params come in
as balls that are worked out beforehand, so that another learning rate or step compiles nothing.
mids have the bits of NumPy's `Ball`, with the same rules in the same order; radii differ by their
own roundings, and are infinite in a few more places: where a function's ball is wide or beyond the
float64 kernels (`ball_functions`). No result depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.blocks import read_only
from refkernels.contexts import loading
from refkernels.contexts.ball import Ball, BallValue
from refkernels.contexts.ball_rules import SPAN
from refkernels.contexts.program import FULL, Program, read
from refkernels.contexts.trace import Term, Trace, Untraceable, term_of
from refkernels.contexts.value import Value
from refkernels.contexts.writer import Writer
from refkernels.elementwise.blocks import spread

Array = npt.NDArray[Any]
Balls = list[tuple[Array, Array]]
BLOCK = 1 << 16  # elements of a thread's turn


def outputs_of(result: Any) -> list[Value]:
    """A formula's results as a list."""
    return [result] if isinstance(result, Value) else list(result)


class Reading:
    """A traced formula over its arrays, ready to run."""

    def __init__(self, formula: Callable[..., Any], *arrays: Any, **params: Any) -> None:
        trace = Trace()
        values = [trace.array(array) for array in arrays]
        outputs = outputs_of(formula(trace, *values, **params))
        self.program = Program([term_of(output) for output in outputs], trace.arrays)
        shape = self.program.shape
        self.width = SPAN if self.program.flat else shape[-1]
        self.size = int(np.prod(shape))
        if not self.size:
            raise Untraceable("There is nothing to compute.")
        numbers = read(self.program.numbers(), Ball(), trace.arrays)
        self.numbers = np.array([_pair(number) for number in numbers]).reshape(-1, 2)
        exact = {
            term
            for term, (_, radius) in zip(self.program.numbers(), self.numbers, strict=True)
            if radius == 0.0
        }
        writer = Writer(self.program, exact)
        body = writer.source()
        self.kernel = loading.kernel(getattr(formula, "__name__", "a formula"), body)
        self.scratch = list(writer.scratch.values())
        level = {t.option: self.program.level[t] for t in self.program.terms if t.op in _READ}
        self.inputs = [self._input(trace.arrays[k], level[k]) for k in writer.inputs]

    @property
    def rows(self) -> int:
        return -(-self.size // self.width)

    def balls(self) -> Balls:
        """(mid, radius) of every output, in its shape."""
        shapes = [self._shape(term) for term in self.program.outputs]
        made = [(np.empty(shape), np.empty(shape)) for shape in shapes]
        flat = [part.reshape(-1) for pair in made for part in pair]
        block = max(1, BLOCK // self.width)

        def work(first: int, last: int) -> None:
            self.kernel(
                first, last, self.width, self.size, self.numbers,
                *self.inputs, *self._scratch(), *flat,
            )  # fmt: skip

        spread(self.rows, work, block)
        return made

    def _shape(self, term: Term) -> tuple[int, ...]:
        shape = self.program.shape
        return shape if self.program.level[term] == FULL else (*shape[:-1], 1)

    def _scratch(self) -> list[Array]:
        sizes = {"kept": self.width, "span": SPAN, "spans": -(-self.width // SPAN)}
        return [np.empty(sizes[kind]) for kind in self.scratch]

    def _input(self, array: Array, level: int) -> Array:
        """Flat, contiguous, read-only, float32, float64 or truth values."""
        if level == FULL:
            array = np.broadcast_to(array, self.program.shape)
        return read_only(np.ascontiguousarray(_plain(array)).reshape(-1))


_READ = ("array", "truth")


def _plain(array: Array) -> Array:
    """In a dtype that kernels know, exactly."""
    if array.dtype == bool or array.dtype in (np.float32, np.float64):
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind in "iu":
        return np.asarray(Ball().array(array).mid)
    return to_float64(array) if array.dtype.itemsize > 2 else array.astype(np.float32)


def _pair(value: Any) -> tuple[float, float]:
    assert isinstance(value, BallValue)
    return float(value.mid.reshape(())), float(value.radius.reshape(()))
