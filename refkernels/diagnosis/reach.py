"""Which outputs any arithmetic may explain.

A kernel that computes the right formula errs by what its roundings amount to. On a few rows the
op's first form, and what is written with identities that lose digits, is read in bfloat16 and with
flushed subnormal numbers. An output whose wrong elements err by far more, in the median, answers
another question: no model of an arithmetic need be replayed for it.
"""

from __future__ import annotations

import itertools

import numpy as np

from refkernels.arithmetic.formats import BFLOAT16, BINARY32
from refkernels.contexts.fast_functions import COMPILED, FastFunctions
from refkernels.contexts.working import Working
from refkernels.diagnosis.edits import identities
from refkernels.diagnosis.edits.screen import WRONG, Screen
from refkernels.diagnosis.problem import Array, Arrays, Problem

_FAR = 8.0  # times the errors of the coarsest arithmetic
_ROWS, _LARGEST = 1 << 11, 1 << 18  # elements of all inputs: those that are read, at most of all


def near(problem: Problem, outputs: Arrays) -> Arrays:
    """The outputs, without those that err by far more than arithmetic does."""
    wrong = {name: got for name, got in outputs.items() if np.isfinite(got).all() and np.any(got)}
    if problem.format != BINARY32 or problem.op.sums or problem.size > _LARGEST or not wrong:
        return outputs
    screen = Screen(problem, wrong, elements=_ROWS)
    if not screen.has_a_program:
        return outputs
    graph = screen.program.graph
    places = {name: seen.bits(screen.base[name]) > WRONG for name, seen in screen.observed.items()}

    def error(name: str, answer: Array) -> float:
        with np.errstate(all="ignore"):
            errors = np.abs(answer.astype(float) - screen.base[name])[places[name]]
        return float(np.median(errors)) if errors.size else 0.0

    far = {name: error(name, screen.observed[name].got) for name in screen.names}
    ways = [{}, *(rule(graph) for text, rule in identities.written(graph) if text)]
    flushing = FastFunctions(BINARY32, COMPILED["--use_fast_math"])
    coarse = Working(BFLOAT16, BINARY32), flushing
    for changes, arithmetic in itertools.product(ways, coarse):
        answers = screen.computed(arithmetic, changes) if far else {}
        far = {name: size for name, size in far.items() if size > _FAR * error(name, answers[name])}
    return {name: got for name, got in outputs.items() if name not in far}
