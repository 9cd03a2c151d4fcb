"""Whether something in the question sets wrong elements apart from right ones.

Then the kernel may compute every element alike and err only there, and neither an accident nor
memory that was never written is shown. Special inputs do, or few digits; the size of an exact
value, of its bound or of the digits that this leaves, in an elementwise op of an input; the place,
or a stretch of sizes; and a core that they fill, such as a row of softmax.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.metrology import ulp

_CHANCE = 2.0**-8


def special(problem: Problem, output: str, wrong: Array) -> bool:
    """Whether some wrong element has an exact value, or in an elementwise op an input, that is NaN
    or infinite."""
    of_elements = _floats(problem, wrong.shape) if problem.op.elementwise else {}
    values = [np.asarray(problem.truth.reference[output]), *of_elements.values()]
    return not all(np.isfinite(x[wrong]).all() for x in values)


def apart(problem: Problem, output: str, got: Array, wrong: Array) -> bool:
    """Whether some wrong element is set apart from all right ones, or several by one stretch of
    sizes or places, or a whole core is wrong. It applies to a few wrong elements: of many, some one
    has the largest value."""
    if not _finite(problem) or _fills_a_core(problem, output, wrong):
        return True
    if problem.op.elementwise:
        values = _floats(problem, got.shape)
        arguments = [values[name][wrong] for name in problem.op.inputs if name in values]
        if any(has_few_bits(x, formats.of(got)).any() for x in arguments):
            return True
    places = [np.arange(got.size).reshape(got.shape), *np.indices(got.shape)]
    return any(_stand_out(size, wrong) for size in (*_sizes(problem, output, got), *places))


def _stand_out(size: Array, wrong: Array) -> bool:
    """Whether wrong elements lie beyond all right ones, or so near each other that k of them, drawn
    at random, would have a chance below 2^-8: k f^(k - 1), where their stretch holds the share f of
    all elements."""
    low, high = size[wrong].min(), size[wrong].max()
    right = size[~wrong & np.isfinite(size)]
    if not (right.size and right.min() <= low and high <= right.max()):
        return True
    number = int(np.count_nonzero(wrong))
    share = float(np.mean((low <= size) & (size <= high)))
    return number > 1 and number * share ** (number - 1) < _CHANCE


def separated(problem: Problem, output: str, got: Array, wrong: Array) -> bool:
    """Whether the wrong elements all lie beyond the right ones in some size."""
    for size in _sizes(problem, output, got):
        right = size[~wrong & np.isfinite(size)]
        if not right.size or size[wrong].max() < right.min() or right.max() < size[wrong].min():
            return True
    return not _finite(problem)


def has_few_bits(values: Doubles, format: Format) -> Array:
    """Mask of the numbers whose significand needs no more than half of the format's bits."""
    significand = np.frexp(values)[0] * 2.0 ** (format.p // 2)
    mask: Array = np.asarray(significand == np.rint(significand))
    return mask


def _sizes(problem: Problem, output: str, got: Array) -> Iterator[Doubles]:
    """The sizes of elements: of the exact value, the bound, the digits left, and the inputs."""
    exact, bound = np.asarray(problem.truth.reference[output]), problem.truth.bound[output]
    yield from (np.abs(exact), bound)
    with np.errstate(invalid="ignore", over="ignore"):
        yield np.abs(exact) / np.maximum(bound, ulp(exact, formats.of(got)) / 2.0)
    if problem.op.elementwise:
        for x in _floats(problem, got.shape).values():
            yield from (x, np.abs(x))


def _finite(problem: Problem) -> bool:
    return all(np.isfinite(to_float64(x)).all() for x in problem.floats.values())


def _floats(problem: Problem, shape: tuple[int, ...]) -> Arrays:
    """The inputs of that shape that hold floats, in float64."""
    return {name: to_float64(x) for name, x in problem.floats.items() if x.shape == shape}


def _fills_a_core(problem: Problem, output: str, wrong: Array) -> bool:
    """Whether all elements of some core of several elements are wrong."""
    definition = problem.op.definition
    if definition is None or not definition.forward.signature.coupled:
        return False
    question = definition.question(problem.direction, problem.inputs, problem.params)
    if not question.rows_of[output] or question.rows in (0, wrong.size):
        return False
    width = question.in_axes(output, wrong)[0].size
    core = question.order(output).reshape(-1) // width
    return bool(np.any(np.bincount(core, wrong.reshape(-1)) == width))
