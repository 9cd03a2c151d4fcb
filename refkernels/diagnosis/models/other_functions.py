"""The answers of formulas that read another library's exp or log.

A formula is read in binary64 with such a function in place of exp or log, which gives the answer to
another question. Where the function's arguments are exact or rounded once, as in softmax, this is
the kernel's answer. The function's own last digits are those of another library, so errors that
match the kernel's to a quarter of their size count as evidence for the elements that are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.contexts.composed import OtherFunction
from refkernels.diagnosis import evidence
from refkernels.diagnosis.fit import LIKE, Fit
from refkernels.diagnosis.hypothesis import Claim, Outcome, Prediction, Variant, moved
from refkernels.diagnosis.models import libraries
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.ops.formula import Formula


def _functions(format: Format) -> Iterator[tuple[str, str, Callable[[Doubles], Doubles]]]:
    """The causes, each with the function that is replaced and its replacement."""
    if format is BINARY32:
        for vector in (True, False):
            yield "coarse_exponential", "exp", partial(libraries.coarse, vector=vector)
        yield "tabulated_logarithm", "log", libraries.tabulated
    if format in libraries.CLAMPS:
        yield "exponential_clamped", "exp", partial(libraries.clamped, format=format)


def of_formula(
    problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]
) -> Iterator[Claim | Variant]:
    """The answers of the op's first form with another exp or log, for outputs that are wrong. A
    gradient reads log in the answer that the forward pass stored."""
    wrong = {output: got for output, got in outputs.items() if not fits[output].ordinary}
    if not wrong:
        return
    formulas, direction = problem.definition, problem.direction
    first = next(iter(formulas.of(direction).forms.values()))
    asked = problem.inputs, problem.params, BINARY64

    def read(form: Formula, replaced: str, function: Callable[[Doubles], Doubles]) -> Arrays:
        return formulas.computed(direction, form, *asked, OtherFunction(replaced, function))

    plain = cache(lambda form, name: read(form, name, getattr(np, name)))
    for cause, name, function in _functions(problem.format):
        form = first
        if name == "log" and direction == "backward":
            form = libraries.gradient(problem.op) or first
        answer = read(form, name, function)
        for output, got in wrong.items():
            told = np.logical_not(evidence.same(answer[output], plain(form, name)[output]))
            wrong_there = wrong_elements(problem, output, got)
            if np.any(told & (wrong_there | ~np.any(wrong_there))):
                yield from _compared(problem, fits[output], got, cause, answer[output])


def _compared(
    problem: Problem, truth: Fit, got: Array, cause: str, values: Array
) -> Iterator[Claim | Variant]:
    """The values as the answer to another question; or the wrong elements, where their errors are
    those of the values, to a quarter of their size."""
    output, doubles = truth.output, to_float64(values)
    model = formats.cast(doubles, formats.of(got))
    right = problem.truth.reference[output].round(formats.of(got))[0]
    if model.shape != got.shape or evidence.same(model, right).all():
        return  # the answer has no exponential, or only that of 0
    # Where nothing is left of a result, as of a subnormal, many an overflow has left as much.
    sizes = [LIKE * np.abs(to_float64(array)) for array in (got, model)]
    vanished = np.maximum(*sizes) < np.abs(to_float64(right))
    answers = [np.where(vanished, right, array) for array in (got, model)]
    all_wrong = wrong_elements(problem, output, got)
    wrong = all_wrong & ~vanished
    if all_wrong.any() and not wrong.any():
        return
    if wrong.any() and evidence.errors_alike(problem, output, *answers):
        equal = int(np.count_nonzero(evidence.same(got, model)))
        outcome = Outcome(True, equal, got.size, truth.over_bound)
        yield Claim(cause, output, Prediction(wrong=wrong, outcome=outcome))
    else:
        yield Variant(cause, {}, moved(problem, output, doubles, 0.0))
