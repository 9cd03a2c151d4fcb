"""Variants of an op that is a formula: its faults that compute something else, and another eps.

A fault is a formula too, so its certified value, its bound and its plain algorithm are read from it
as the op's own are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.formulas import is_right
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Arrays, Later, Problem
from refkernels.truth import with_underflow

T = TypeVar("T")
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
    read = problem.op.formulas
    assert read is not None
    question = problem.direction, formula, problem.inputs, problem.params
    judged = {name: problem.format_of(name) for name in problem.op.names(problem.direction)}

    def each(part: Callable[[Format], Mapping[str, T]]) -> dict[str, T]:
        found: dict[str, T] = {}
        for format in dict.fromkeys(judged.values()):
            found |= {name: one for name, one in part(format).items() if judged[name] == format}
        return found

    def bounds(format: Format) -> Mapping[str, Any]:
        return with_underflow(read.bounded(*question, format), format, problem.inputs)

    return Answer(
        each(lambda format: read.certified(*question, ("rounding", format))),
        Later(lambda: each(bounds)),
        Later(lambda: each(lambda format: read.computed(*question, format))),
        invariant=False,
    )
