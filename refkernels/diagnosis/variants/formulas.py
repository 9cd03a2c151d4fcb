"""Variants of an op that is a formula: its faults that compute something else, and another eps.

A fault is a formula too, so its certified value, its bound and its plain algorithm are read from it
as the op's own are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from refkernels.diagnosis.formulas import is_right
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Arrays, Problem
from refkernels.truth import with_underflow

USUAL_EPS = (1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 0.0)


def other_formulas(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """What the op's faults compute, in exact arithmetic."""
    formulas = problem.op.formulas
    if formulas is None:
        return
    for fault in formulas.faults:
        formula = getattr(fault, problem.direction)
        if formula is not None and not fault.unstable and not is_right(problem, formula):
            answer = _answer(problem, formula)
            mine = replace(answer, reference=fault.changed(answer.reference))
            yield Variant(fault.cause, dict(fault.details or {}), mine)


def other_eps(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Every usual eps that is not the one asked for."""
    if problem.op.formulas is None or not isinstance(problem.params.get("eps"), float):
        return
    for eps in USUAL_EPS:
        if eps != problem.params["eps"]:
            yield Variant("eps_differs", {"eps": eps}, problem.ask(params={"eps": eps}))


def _answer(problem: Problem, formula: Any) -> Answer:
    """A formula's answer, each output in its format."""
    read, question = problem.op.formulas, (problem.direction, formula, problem.inputs)
    assert read is not None
    answer = Answer({}, {}, {}, invariant=False)
    names = problem.op.names(problem.direction)
    formats = {name: problem.format_of(name) for name in names}
    for format in dict.fromkeys(formats.values()):
        exact = read.certified(*question, problem.params, ("rounding", format))
        bounds = read.bounded(*question, problem.params, format)
        bounds = with_underflow(bounds, format, problem.inputs)
        plain = read.computed(*question, problem.params, format)
        for name in (name for name in exact if formats[name] == format):
            answer.reference[name] = exact[name]
            answer.bound[name] = bounds[name]
            answer.plain[name] = plain[name]
    return answer
