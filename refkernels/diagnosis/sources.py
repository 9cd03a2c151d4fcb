"""Every source of hypotheses, in the order in which they are tried.

Questions need only the outputs; algorithms also need their fit to the truth. Hypotheses of equal
rank are listed in this order.

On a few rows the op's forms, also written with identities that lose digits, are read in the
coarsest arithmetics. An output whose wrong elements err by far more, in the median, answers
another question: no model of such an arithmetic need be replayed for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from refkernels.arithmetic.formats import BFLOAT16, BINARY32
from refkernels.contexts.fast_functions import COMPILED, FastFunctions
from refkernels.contexts.working import RoundedArithmetic
from refkernels.diagnosis import accumulators, formulas, functions, models, orders, recovered
from refkernels.diagnosis.edits.screen import WRONG, Screen
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Algorithms, Hypothesis, Questions
from refkernels.diagnosis.models import compiled, other_functions
from refkernels.diagnosis.problem import READABLE, Array, Arrays, Problem
from refkernels.diagnosis.variants import elsewhere, factor, params, precision, quantised
from refkernels.diagnosis.variants import formulas as other_definitions

_FAR = 8.0  # times the errors of the coarsest arithmetic
_ROWS, _LARGEST = 1 << 11, 1 << 18  # elements of all inputs: those that are read, at most of all

VARIANTS: tuple[Questions, ...] = (
    factor.scale_factor,
    elsewhere.permuted,
    elsewhere.exchanged_outputs,
    precision.narrowed_inputs,
    precision.flushed_inputs,
    precision.wrong_dtype,
    precision.truncated_output,
    elsewhere.other_axis,
    other_definitions.other_formulas,
    other_definitions.other_formulas_in_float32,
    other_definitions.rounded_params,
    params.other_values,
    factor.gradient_multiplied,
)


def variants(problem: Problem, outputs: Arrays) -> Iterator[Hypothesis]:
    """Other questions that the kernel may have answered: general ones, then the op's own."""
    for source in (*VARIANTS, *models.of(problem.op).questions):
        yield from source(problem, outputs)


def algorithms(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Hypothesis]:
    """How the kernel may have computed; whole arithmetics, where the errors are of their size. What
    shows in no part of a large question has other reasons."""
    if problem.size > READABLE and problem.read["parts"]:
        return
    own = models.of(problem.op)
    first: tuple[Algorithms, ...] = quantised.find, orders.find
    known = formulas.find, functions.find, compiled.find, other_functions.of_formula
    coarse, fast = _near(problem, outputs, fits)
    asked: dict[Algorithms, Arrays] = {accumulators.find: coarse, compiled.find: fast}
    asked |= dict.fromkeys(own.rounded, fast)
    of_sums = recovered.find, recovered.of_narrow_sums
    for source in (*first, accumulators.find, *own.algorithms, *own.rounded, *known, *of_sums):
        if within_reach := asked.get(source, outputs):
            yield from source(problem, within_reach, fits)


def _near(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> tuple[Arrays, Arrays]:
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
