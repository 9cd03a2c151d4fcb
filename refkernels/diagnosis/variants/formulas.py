"""Variants of a formula: faults that compute something else, rounded params.

A fault is a formula too: its certified value, bound and plain algorithm are read from it, like the
op's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.formulas import faults, if_far
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Arrays, Later, Problem
from refkernels.diagnosis.variants import precision
from refkernels.truth import with_underflow

T = TypeVar("T")


def other_formulas(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The certified answers of the op's faults."""
    for fault, formula in faults(problem):
        if not fault.unstable:
            far = if_far(problem, fault.changed(outputs), formula)
            full = far or _answer_once(problem, formula)
            changed = replace(full, reference=fault.changed(full.reference))
            yield Variant(fault.cause, dict(fault.details or {}), changed)


def _answer_once(problem: Problem, formula: Any) -> Answer:
    return problem.once((answer, formula), lambda: answer(problem, formula))


def other_formulas_in_float32(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The faults' answers to the inputs in float32, where all of a float64 kernel's outputs are
    numbers of float32: it is a float32 kernel, with another definition."""
    if problem.formulas is None or problem.format is not formats.BINARY64:
        return
    narrow = formats.BINARY32
    if not outputs or not all(precision.all_in(got, narrow) for got in outputs.values()):
        return
    right = {name: problem.truth.reference[name].round(formats.BINARY64)[0] for name in outputs}
    if all(precision.all_in(array, narrow) for array in right.values()):
        return
    inputs = {
        name: array.astype(narrow.storage) if array.dtype == np.float64 else array
        for name, array in problem.inputs.items()
    }
    for variant in other_formulas(replace(problem, inputs=inputs, format=narrow), outputs):
        computed, plain = variant.answer, dict(variant.answer.plain)
        wide = {name: array.astype(np.float64) for name, array in plain.items()}
        details = {**variant.details, "computed_in": narrow.name}
        yield replace(variant, details=details, answer=replace(computed, plain=wide, format=narrow))


def _answer_with(problem: Problem, **params: float) -> Answer:
    """The op's answer with these params."""
    return problem.once((_answer_with, *params.items()), lambda: problem.ask(params=params))


def rounded_params(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Float params that a float64 kernel holds in float32, or a kernel of 16 bits in its own
    format: eps alone, another alone, or all."""
    held = formats.BINARY32 if problem.format is formats.BINARY64 else problem.format
    definition = problem.op.definition
    if definition is None or problem.format is formats.BINARY32:
        return
    params = {**problem.op.params, **problem.params}
    changed = {
        name: narrow
        for name, value in params.items()
        if isinstance(value, float)
        and (narrow := float(formats.round_to(np.array(value), held))) != value
        and narrow in definition.domain(name)
    }
    for names in dict.fromkeys([*((name,) for name in changed), tuple(changed)]):
        rounded = {name: changed[name] for name in names}
        if names == ("eps",) and held is formats.BINARY32:
            yield Variant("eps_rounded", rounded, _answer_with(problem, **rounded))
            asked = replace(problem, params={**problem.params, **rounded})
            for fault, formula in faults(asked):
                if fault.unstable:  # its errors would hide so small a difference
                    also = {**rounded, "with": fault.cause}
                    yield Variant("eps_rounded", also, _answer_once(asked, formula))
        elif names:
            details = {"names": ", ".join(names), "held": held.name}
            yield Variant("params_rounded", details, _answer_with(problem, **rounded))


def answer(problem: Problem, formula: Any) -> Answer:
    """A formula's answer, each output in its format."""
    formulas = problem.definition
    question = problem.direction, formula, problem.inputs, problem.params
    judged = {name: problem.format_of(name) for name in problem.op.names(problem.direction)}

    def by_format(part: Callable[[Format], Mapping[str, T]]) -> dict[str, T]:
        parts: dict[str, T] = {}
        for format in dict.fromkeys(judged.values()):
            parts |= {name: value for name, value in part(format).items() if judged[name] == format}
        return parts

    def bounds(format: Format) -> Mapping[str, Any]:
        return with_underflow(formulas.bounded(*question, format), format, problem.inputs)

    return Answer(
        by_format(lambda format: formulas.certified(*question, ("rounding", format))),
        Later(lambda: by_format(bounds)),
        Later(lambda: by_format(lambda format: formulas.computed(*question, format))),
        invariant=False,
    )
