"""Variants of an op that is a formula: its faults that compute something else, and another eps.

A fault is a formula too, so its certified value, its bound and its plain algorithm are read from it
as the op's own are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
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
            right = answer(problem, formula)
            mine = replace(right, reference=fault.changed(right.reference))
            yield Variant(fault.cause, dict(fault.details or {}), mine)


def other_eps(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Every usual eps that is not the one asked for."""
    if problem.op.formulas is None or not isinstance(problem.params.get("eps"), float):
        return
    for eps in USUAL_EPS:
        if eps != problem.params["eps"]:
            yield Variant("eps_differs", {"eps": eps}, problem.ask(params={"eps": eps}))


def rounded_params(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Float params held in float32 by a kernel of float64: eps alone, another one, or all."""
    if problem.op.formulas is None or problem.format.p <= formats.BINARY32.p:
        return
    params = {**problem.op.params, **problem.params}
    narrow = {n: float(np.float32(v)) for n, v in params.items() if isinstance(v, float)}
    changed = {n: v for n, v in narrow.items() if v != params[n]}
    for some in dict.fromkeys([*((name,) for name in changed), tuple(changed)]):
        if some == ("eps",):
            told = problem.ask(params={"eps": changed["eps"]})
            yield Variant("eps_rounded", {"eps": changed["eps"]}, told)
        elif some:
            rounded = {name: changed[name] for name in some}
            details = {"names": ", ".join(some)}
            yield Variant("params_rounded", details, problem.ask(params=rounded))


def answer(problem: Problem, formula: Any) -> Answer:
    """A formula's answer, each output in its format."""
    read, question = problem.op.formulas, (problem.direction, formula, problem.inputs)
    assert read is not None
    found = Answer({}, {}, {}, invariant=False)
    names = problem.op.names(problem.direction)
    judged = {name: problem.format_of(name) for name in names}
    for format in dict.fromkeys(judged.values()):
        exact = read.certified(*question, problem.params, ("rounding", format))
        bounds = read.bounded(*question, problem.params, format)
        bounds = with_underflow(bounds, format, problem.inputs)
        plain = read.computed(*question, problem.params, format)
        for name in (name for name in exact if judged[name] == format):
            found.reference[name] = exact[name]
            found.bound[name] = bounds[name]
            found.plain[name] = plain[name]
    return found
