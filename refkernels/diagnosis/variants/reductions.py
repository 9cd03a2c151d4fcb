"""Formulas whose reductions leave out part of an axis: its tail, or one block.

    dropped_tail            the last n mod B terms, or the last one, of every sum over n
    part_of_sum_left_out    one block of them: terms B i to B (i + 1)

In any formula, every sum, mean, norm, maximum and product over axes of one length is read without
those terms; a mean is still divided by n, or by the number that is left. The working precision
finds the part, and the oracle answers the best one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.variants import formulas
from refkernels.diagnosis.variants.lanes import kept
from refkernels.metrology import UNUSUAL
from refkernels.ops import edits

_LARGEST = 1 << 17  # elements of all inputs: the formula is read once for each part
_MOST_BLOCKS = 16  # of one size
_LONGEST = 1 << 12  # an axis
_LENGTHS = 4  # axes


class Part(NamedTuple):
    """Terms `start` to `stop` of `n`; `counted`: whether a mean counts them still."""

    n: int
    start: int
    stop: int
    counted: bool


def left_out(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The part without which the definition comes nearest to the outputs, where that is far nearer
    than the right answer."""
    op_formulas = problem.op.formulas
    if op_formulas is None or problem.op.total or problem.op.elementwise:
        return
    if not _wrong(problem, outputs):
        return
    definition = next(iter(op_formulas.way(problem.direction).forms.values()))
    parts = _parts(problem)
    question = problem.inputs, problem.params, problem.format
    distances: list[tuple[float, Part]] = []
    for part in parts:
        formula = edits.without(definition, part)
        answer = op_formulas.computed(problem.direction, formula, *question)
        distances.append((_distance(outputs, answer), part))
    if not distances:
        return
    nearest, part = min(distances)
    if nearest * UNUSUAL**2 > _distance(outputs, problem.truth.plain):
        return
    cause, details = "part_of_sum_left_out", {"n": part.n, "start": part.start, "stop": part.stop}
    if part.stop == part.n:
        cause, details = "dropped_tail", {"n": part.n, "dropped": part.n - part.start}
    certified = formulas.answer(problem, edits.without(definition, part))
    yield Variant(cause, details, certified, trials=len(parts))


def _parts(problem: Problem) -> list[Part]:
    """The parts that may be left out of the inputs' axes, in the formula's shapes."""
    assert problem.op.formulas is not None
    question = problem.op.formulas.question(problem.direction, problem.inputs, problem.params)
    arrays = [array for array in question.arrays.values() if isinstance(array, np.ndarray)]
    if sum(array.size for array in arrays) > _LARGEST:
        return []
    lengths = dict.fromkeys(n for array in arrays for n in array.shape if 2 < n <= _LONGEST)
    spans = {
        (n, start, stop): None
        for n in list(lengths)[:_LENGTHS]
        for start, stop in (*((length, n) for length in kept(n)), *_blocks(n))
        if stop - start < n
    }
    return [Part(*span, counted) for span in spans for counted in (True, False)]


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    """Blocks of powers of two, large enough to be few."""
    block = 1 << max((n - 1).bit_length() - 1, 1)
    while block > 1 and -(-n // block) <= _MOST_BLOCKS:
        yield from ((start, min(start + block, n)) for start in range(0, n, block))
        block //= 2


def _wrong(problem: Problem, outputs: Arrays) -> bool:
    """Whether some number is beyond its bound."""
    for name, got in outputs.items():
        reference = problem.truth.reference[name]
        if got.shape != reference.shape:
            return False
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(np.float64) - np.asarray(reference))
        if np.any((error > problem.truth.bound[name]) & np.isfinite(error)):
            return True
    return False


def _distance(outputs: Arrays, answer: Arrays) -> float:
    """The sum of squared differences, relative to each output's largest number and at most 1 each;
    a NaN on one side only counts as 1."""
    total = 0.0
    with np.errstate(all="ignore"):
        for name, got in outputs.items():
            wide = got.astype(np.float64)
            size = float(np.max(np.abs(wide), where=np.isfinite(wide), initial=0.0)) or 1.0
            error = np.abs(wide - answer[name].astype(np.float64)) / size
            error = np.where(np.isnan(error), np.isnan(wide) != np.isnan(answer[name]), error)
            total += float(np.sum(np.square(np.minimum(error, 1.0))))
    return total
