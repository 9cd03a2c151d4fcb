"""Other computations that a printed output may come from, each with its reach.

They are the causes of `diagnosis` that are another question about the same op, or another formula:
another eps, the op's faults, another axis, inputs that are exchanged or transposed, a bias left out
or added twice, gradients swapped, a decay that was not requested. The reach of such a question is
that of the op for other intervals or other params.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.edits import names
from refkernels.diagnosis.edits.usual import faults_of
from refkernels.diagnosis.variants.elsewhere import SWAPPED_GRADIENTS
from refkernels.diagnosis.variants.params import USUAL, cause_of
from refkernels.op import Op
from refkernels.printed import reach as reaches
from refkernels.printed.digits import Intervals
from refkernels.printed.reach import Box, PrintedQuestion, Reach


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
    for cause, details, changed in _other_questions(asked):
        others = {**asked.box, **changed.inputs}
        inputs = {name: interval for name, interval in others.items() if interval is not None}
        reach = reach_with(replace(asked, box=inputs), format, changed.params)
        if reach:  # otherwise the op has no such question
            yield PossibleCause(cause, details, reach)
    yield from _faults(asked, format, right)
    first, second = SWAPPED_GRADIENTS
    if asked.direction == "backward" and {first, second} <= set(right):
        exchanged = {first: right[second], second: right[first]}
        yield PossibleCause("swapped_weight_bias_grad", {}, exchanged)


def reach_with(
    asked: PrintedQuestion, format: Format, params: Mapping[str, Any]
) -> Mapping[str, Reach]:
    """The reach with other values of params; empty where the op has no such question."""
    try:
        return reaches.reach(replace(asked, params={**asked.params, **params}), format)
    except (ValueError, TypeError, ZeroDivisionError):
        return {}


@dataclass(frozen=True)
class _Changed:
    """What another question changes; an input that is None is left out."""

    inputs: Mapping[str, Intervals | None]
    params: Mapping[str, Any]


_Question = tuple[str, dict[str, Any], _Changed]


def _other_questions(asked: PrintedQuestion) -> Iterator[_Question]:
    yield from _other_axes(asked.params, asked.box)
    if asked.direction == "forward":
        yield from _other_inputs(asked.op, asked.box)


def _other_axes(params: Mapping[str, Any], box: Box) -> Iterator[_Question]:
    axis, x = params.get("axis"), box.get("x")
    if isinstance(axis, int | np.integer) and x is not None:
        shape = x.middle.shape
        for alternative in range(len(shape)):
            if alternative != axis % len(shape) and shape[alternative] > 1:
                yield "wrong_axes", {"axes": [alternative]}, _Changed({}, {"axis": alternative})


def _other_inputs(op: Op, box: Box) -> Iterator[_Question]:
    """Inputs in each other's place, transposed, left out, and added twice."""
    named = {fault.cause for fault in op.formulas.faults} if op.formulas else set()
    named |= {entry["cause"] for entry in names.usual({"op": op.name})}
    unnamed = named.isdisjoint(("arguments_exchanged", "gate_swapped"))
    for (first, a), (second, b) in itertools.combinations(box.items(), 2) if unnamed else ():
        if a.middle.shape == b.middle.shape and not _same(a, b):
            details = {"part": first, "other": second}
            yield "inputs_exchanged", details, _Changed({first: b, second: a}, {})
    product = op.sums.get(op.outputs[0])
    for name in (product.terms.keys() - set(op.row_inputs)) & box.keys() if product else ():
        *_, rows, columns = (0, 1, *box[name].middle.shape)
        if rows == columns and not _same(box[name], transposed := box[name].transposed()):
            yield "transposed_weight", {"input": name}, _Changed({name: transposed}, {})
    if "bias" in box and "bias" in op.optional:
        yield "missing_bias", {}, _Changed({"bias": None}, {})
        yield "doubled_bias", {}, _Changed({"bias": box["bias"].doubled()}, {})


def _same(a: Intervals, b: Intervals) -> bool:
    ends = ((a.low, b.low), (a.high, b.high))
    return all(np.array_equal(*pair, equal_nan=True) for pair in ends)


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
