"""Other computations that a printed output may come from, each with its reach.

They are the causes of `diagnosis` that are another question about the same op, or another formula:
another eps, the op's faults, another axis, gradients swapped, a decay that was not requested; and
where none of them is the cause, the edits of the op's program. The reach of such a question is that
of the op for other params, or of its formula.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.edits import search
from refkernels.diagnosis.edits.usual import faults_of
from refkernels.diagnosis.hypothesis import Evidence
from refkernels.diagnosis.problem import Problem
from refkernels.diagnosis.variants.elsewhere import SWAPPED_GRADIENTS
from refkernels.diagnosis.variants.factor import scale_factor
from refkernels.diagnosis.variants.params import USUAL, cause_of
from refkernels.printed import reach as reaches
from refkernels.printed.digits import Intervals
from refkernels.printed.reach import PrintedQuestion, Reach


@dataclass(frozen=True)
class PossibleCause:
    """A cause, and what kernels with it may answer. `unstable`: it is the op itself in exact
    arithmetic, and rounds badly. `param`: the one that has another value."""

    cause: str
    details: Mapping[str, Any]
    reach: Mapping[str, Reach]
    unstable: bool = False
    param: str | None = None


def possible(
    asked: PrintedQuestion, format: Format, right: Mapping[str, Reach]
) -> Iterator[PossibleCause]:
    """Every cause whose reach is known, other values of params first."""
    for name, usual in USUAL.items():
        given = asked.params.get(name)
        if not isinstance(given, float) or (given and name != "eps"):
            continue  # a decay or dampening is tried only where the question has none
        for value in usual:
            if value != given:
                reach = reach_with(asked, format, {name: value})
                cause, details = cause_of(name, given, value, (value, value))
                yield PossibleCause(cause, details, reach, param=name)
    for axis in _other_axes(asked):
        if reach := reach_with(asked, format, {"axis": axis}):
            yield PossibleCause("wrong_axes", {"axes": [axis]}, reach)
    yield from _faults(asked, format, right)
    first, second = SWAPPED_GRADIENTS
    if asked.direction == "backward" and {first, second} <= set(right):
        exchanged = {first: right[second], second: right[first]}
        yield PossibleCause("swapped_weight_bias_grad", {}, exchanged)


def edited(
    asked: PrintedQuestion, output: str, printed: Intervals, right: Reach
) -> Iterator[PossibleCause]:
    """A factor, and the edits of the op's program that come near to what is printed, as the digits
    tell."""
    format = printed.format
    assert format is not None
    question = asked.op, asked.direction, asked.middles, dict(asked.params), format
    problem = Problem(*question, hidden={output: printed.radius + right.radius})
    outputs = {output: formats.cast(printed.middle, format)}
    for factor in scale_factor(problem, outputs):
        low, high = factor.details.get("interval", (-1.0, -1.0))
        middle = (low + high) / 2.0
        radius = right.radius * abs(middle) + np.abs(right.mid) * (high - low)
        reach = Reach(right.mid * middle, radius, 2.0 * right.error * abs(middle))
        yield PossibleCause(factor.cause, factor.details, {output: reach})
    for cause, details, formula in search.formulas_of(problem, outputs, Evidence.MATCHED):
        with contextlib.suppress(ValueError, TypeError, ZeroDivisionError):  # it has no value here
            known = reaches.of_formula(problem.definition, formula, asked, format)
            yield PossibleCause(cause, details, known)


def reach_with(
    asked: PrintedQuestion, format: Format, params: Mapping[str, Any]
) -> Mapping[str, Reach]:
    """The reach with other values of params; empty where the op has no such question."""
    try:
        return reaches.reach(replace(asked, params={**asked.params, **params}), format)
    except (ValueError, TypeError, ZeroDivisionError):
        return {}


def _other_axes(asked: PrintedQuestion) -> Iterator[int]:
    """The other axes of x along which the op can be computed."""
    axis, x = asked.params.get("axis"), asked.box.get("x")
    if isinstance(axis, int | np.integer) and x is not None:
        shape = x.middle.shape
        yield from (k for k, n in enumerate(shape) if k != axis % len(shape) and n > 1)


def _faults(
    asked: PrintedQuestion, format: Format, right: Mapping[str, Reach]
) -> Iterator[PossibleCause]:
    definition = asked.op.definition
    inputs = {name: interval.middle for name, interval in asked.box.items()}
    declared = {fault.cause for fault in definition.faults} if definition else set()
    for fault in faults_of(definition, asked.direction, inputs, asked.params):
        assert definition is not None
        if fault.cause in declared and fault not in definition.faults:
            continue  # the op's own has that name
        arguments = (definition, getattr(fault, asked.direction), asked, format)
        try:
            unstable = partial(reaches.of_model, right=right)
            reach = (unstable if fault.unstable else reaches.of_formula)(*arguments)
        except (ValueError, TypeError, ZeroDivisionError):
            continue  # the formula has no value here
        yield PossibleCause(fault.cause, fault.details or {}, fault.changed(reach), fault.unstable)
