"""Which outputs an arithmetic may explain.

On a few rows the op's forms, also written with identities that lose digits, are read in the
coarsest arithmetics. An output whose wrong elements err by far more, in the median, answers
another question: no model of such an arithmetic need be replayed for it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from refkernels.arithmetic.formats import BFLOAT16, BINARY32
from refkernels.contexts.fast_functions import COMPILED, FastFunctions
from refkernels.contexts.working import RoundedArithmetic
from refkernels.diagnosis.edits.screen import WRONG, Screen
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.models import compiled
from refkernels.diagnosis.problem import Array, Arrays, Problem

_FAR = 8.0  # times the errors of the coarsest arithmetic
_ROWS, _LARGEST = 1 << 11, 1 << 18  # elements of all inputs: those that are read, at most of all


def near(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> tuple[Arrays, Arrays]:
    """The outputs, without those that err by far more than bfloat16 does, and without those that
    err by far more than functions and divisions that are compiled for speed."""
    wrong = {name: got for name, got in outputs.items() if not fits[name].ordinary}
    wrong = {name: got for name, got in wrong.items() if np.isfinite(got).all() and np.any(got)}
    wide = problem.format.p > BINARY32.p
    if wide or problem.op.sums or problem.size > _LARGEST or not wrong:
        return outputs, outputs
    screen = Screen(problem, wrong, elements=_ROWS)
    if not screen.has_a_program:
        return outputs, outputs
    places = {name: seen.bits(screen.base[name]) > WRONG for name, seen in screen.observed.items()}
    every = reversed(list(compiled.programs(problem, screen)))  # the first of what rounds alike
    ways = {text or id(graph): (graph, changes) for (text, *_), graph, changes in every}

    def error(name: str, answer: Array) -> float:
        with np.errstate(all="ignore"):
            errors = np.abs(answer.astype(float) - screen.base[name])[places[name]]
        return float(np.median(errors)) if errors.size else 0.0

    def within(arithmetic: RoundedArithmetic) -> Arrays:
        far = {name: error(name, screen.observed[name].got) for name in screen.names}
        for graph, changes in ways.values():
            answers = screen.computed(graph, arithmetic, changes) if far else {}
            far = {n: size for n, size in far.items() if size > _FAR * error(n, answers[n])}
        return {name: got for name, got in outputs.items() if name not in far}

    fast = within(FastFunctions(problem.format, COMPILED["--use_fast_math"]))
    narrow = problem.format.p < BINARY32.p  # no bfloat16 is far from it
    return outputs if narrow else within(RoundedArithmetic(BFLOAT16, BINARY32)), fast
