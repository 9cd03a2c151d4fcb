"""Formulas whose intermediate results are flushed to zero where they are subnormal, such as the
squares in dy b / (a² + b²) at a = b = 1e-20.

A form of the op, or a fault that only rounds badly, is read as with the processor's FTZ and DAZ
bits. It fits by its bits; or where the same elements are NaN or infinite, and the errors of the
others match to a quarter of their size. A wrong NaN or infinity is evidence by its place.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from refkernels.arithmetic.formats import BINARY32, BINARY64
from refkernels.diagnosis import evidence, places
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Claim, Outcome, Prediction
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.wrong import flush_shown, wrong_elements

_LARGEST = 1 << 18  # elements of an output


def of_formula(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """The op's formulas, read in this way, for outputs that are wrong."""
    wrong = {
        name: got for name, got in outputs.items() if not fits[name].fine and got.size <= _LARGEST
    }
    if problem.formulas is None or not wrong or problem.format not in (BINARY32, BINARY64):
        return
    for cause, form, formula in _formulas(problem):
        answer = problem.computed(formula, "flushed", order="pairwise")
        unflushed = functools.partial(problem.computed, formula, order="pairwise")
        for name, got in wrong.items():
            if name not in answer:
                continue
            claim = _compared(problem, fits[name], got, answer[name], cause, form)
            if claim is not None and not evidence.same(answer[name], unflushed()[name]).all():
                yield claim


def _formulas(problem: Problem) -> Iterator[tuple[str, str, Any]]:
    """The op's forms, and its faults that only round badly, by cause and name."""
    for form, formula in problem.every_form.items():
        yield "flush_to_zero", form, formula
    for fault in problem.faults:
        if fault.unstable:
            formula = getattr(fault, problem.direction)
            yield fault.cause, f"{fault.cause.replace('_', ' ')}, flushed", formula


def _compared(
    problem: Problem, truth: Fit, got: Array, model: Array, cause: str, form: str
) -> Claim | None:
    """The claim that the output is the model's, None where it is not."""
    output = truth.output
    if got.shape != model.shape or got.dtype != model.dtype:
        return None
    same = evidence.same(got, model)
    if same.all():
        prediction = Prediction(bits=model, against=problem.plain[output])
        return Claim(cause, output, prediction, {}, form)
    wrong = wrong_elements(problem, output, got)
    special = ~(np.isfinite(got) & np.isfinite(model))
    if not wrong.any() or not same[special].all():
        return None
    if not special[wrong].all() and not evidence.errors_alike(problem, output, got, model):
        return None
    earns, misplaced = None, wrong & special
    if misplaced.any():
        bits = places.by_unit(problem, output, misplaced)
        earns = places.shared(problem, output, wrong, bits)
    outcome = Outcome(True, int(np.count_nonzero(same)), got.size, truth.over_bound)
    counted = flush_shown(problem, output, got, wrong)
    prediction = Prediction(wrong=wrong, outcome=outcome, earns=earns, counted=counted)
    return Claim(cause, output, prediction, {"wrong": int(np.count_nonzero(wrong))}, form)
