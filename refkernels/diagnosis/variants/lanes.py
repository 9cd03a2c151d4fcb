"""Blocks that do not divide a length, and the axes that an output's products are summed over.

A kernel works through n elements in blocks. Where the last block is not full, it must mask the
lanes beyond n, which hold zeros, or finish the rest separately.
"""

from __future__ import annotations

import numpy as np

from refkernels.diagnosis.problem import Answer, Doubles, Problem

_BLOCKS = tuple(2**k for k in range(1, 13))
SAMPLE = 16  # rows


def padded(n: int) -> list[int]:
    """The lengths to which n may be padded: the next power of two, multiples of blocks."""
    lengths = {1 << (n - 1).bit_length(), *(-(-n // block) * block for block in _BLOCKS)}
    return sorted(lengths - {n})


def kept(n: int) -> list[int]:
    """The possible numbers of elements without the tail, or without the last element."""
    return sorted({n - 1, *(n - n % block for block in _BLOCKS)} - {n, 0})


def distance(values: Doubles, answer: Doubles) -> float:
    """The sum of squared differences; infinite where it is not a number."""
    with np.errstate(all="ignore"):
        total = float(np.sum(np.square(values - answer)))
    return total if np.isfinite(total) else np.inf


def summed_axes(problem: Problem, output: str) -> dict[str, int]:
    """The inputs with the index letter that an output's products are summed over, and the axis of
    that letter, counted from the end."""
    op, first = problem.op, problem.op.sums[problem.op.outputs[0]]
    product = op.sums[output]
    (summed,) = {letter for letters in product.terms.values() for letter in letters} - {
        *product.letters
    }
    letters = {**first.terms, op.cotangent: first.letters}
    return {
        name: axes.index(summed) - len(axes)
        for name, axes in letters.items()
        if name in problem.inputs and summed in axes
    }


def only(answer: Answer, output: str) -> Answer:
    return Answer(
        {output: answer.reference[output]},
        {output: answer.bound[output]},
        {output: answer.plain[output]},
    )
