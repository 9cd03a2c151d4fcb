"""Mutants: wrong kernels, made from the op, that a judge should refuse.

For any op: inputs in a narrower format, a stale element, an element that was never written, other
params; if something is summed, the last term or the tail left out, statistics of the first half, a
mean divided by n - 1. For this op: the faults that its oracle and `diagnosis` name. A mutant that
has the bits of a right kernel on every challenge does not count, nor does one that does what a
right form may do in this dtype; this one is named.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.graph import Edits, Graph
from refkernels.diagnosis import models
from refkernels.diagnosis.edits import reductions
from refkernels.diagnosis.edits.catalogue import Program
from refkernels.diagnosis.edits.usual import faults_of
from refkernels.diagnosis.problem import Problem
from refkernels.judging import precision
from refkernels.judging.data import InputRoles
from refkernels.judging.standard import Challenge
from refkernels.ops import edits
from refkernels.ops.formula import Fault as WrongFormula
from refkernels.ops.formula import Whole

Array = npt.NDArray[Any]
Outputs = Mapping[str, Any]
Answers = Callable[[Challenge], Mapping[str, Outputs]]
_TILE = 16
_FACTOR = 1.0 + 2.0**-7  # by which a param is changed


@dataclass(frozen=True)
class Shown:
    """What the challenges would have caught. `killed`, `alive`: names of mutants; `hidden`: those
    that no challenge can refuse; `smallest`: by output, the smallest error that would have been
    caught in an element, in ulp; `cut`: whether time was up before every mutant had been tried."""

    killed: tuple[str, ...] = ()
    alive: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    smallest: Mapping[str, float] = field(default_factory=dict)
    cut: bool = False


def shown(challenges: Sequence[Challenge], roles: InputRoles, seconds: float = math.inf) -> Shown:
    """Every mutant against the challenges, which are those that reject all decoys, for so many
    seconds of this process. A mutant whose trial is cut short does not count."""
    challenges = [c for c in challenges if all(array.size for array in c.floats.values())]
    if not challenges:
        return Shown()
    first = challenges[0]
    killed: dict[str, bool] = {}
    right = functools.cache(_right_answers)
    deadline = time.process_time() + seconds
    for answers in _mutants(first, roles):
        for name, refused in _tried(answers, challenges, right, deadline).items():
            killed[name] = killed.get(name, False) or refused
    return Shown(
        tuple(name for name, refused in killed.items() if refused),
        tuple(name for name, refused in killed.items() if not refused),
        tuple(fault.cause for fault in _faults(first) if first.format.name in fault.right_in),
        _smallest(challenges),
        time.process_time() > deadline,
    )


def _tried(
    answers: Answers,
    challenges: Sequence[Challenge],
    right: Callable[[Challenge], list[Outputs]],
    deadline: float,
) -> dict[str, bool]:
    """By name, whether some challenge refuses each mutant of one kind. Mutants that never differ
    from a right kernel are left out. Stops as soon as every mutant seen so far is refused; past the
    deadline, only those that are refused count."""
    refused: dict[str, bool] = {}
    for challenge in challenges:
        if time.process_time() > deadline:
            return {name: True for name, seen in refused.items() if seen}
        with np.errstate(all="ignore"):
            for name, outputs in answers(challenge).items():
                if not refused.get(name, False) and challenge.refuses(outputs):
                    refused[name] = True
                elif name not in refused and not _same_bits(right(challenge), outputs):
                    refused[name] = False
        if refused and all(refused.values()):
            break
    return refused


def _right_answers(challenge: Challenge) -> list[Outputs]:
    """The truth, the plain algorithm's answer, and the definition's, where that is another."""
    right: list[Outputs] = [challenge.standard().rounded, _plain(challenge)]
    if challenge.op.definition is not None and challenge.op.formulas is None:
        right.append(_computed(challenge, None))
    return right


def _same_bits(right: Sequence[Outputs], outputs: Outputs) -> bool:
    return any(
        all(np.array_equal(got, expected[name], equal_nan=True) for name, got in outputs.items())
        for expected in right
    )


def _smallest(challenges: Sequence[Challenge]) -> dict[str, float]:
    """By output, the least bound of an element, in ulp of its exact value and at least 0.5; one ulp
    if bits are demanded."""
    from refkernels.metrology.ulp_errors import ulp

    smallest: dict[str, float] = {}
    for challenge in challenges:
        standard = challenge.standard()
        for name, exact in standard.reference.items():
            right = np.asarray(exact)
            usable = np.isfinite(right) & (right != 0.0)
            if usable.any():
                with np.errstate(all="ignore"):
                    ratio = standard.bound[name][usable] / ulp(
                        right[usable], standard.formats[name]
                    )
                limit = 1.0 if standard.exact(name) else max(float(np.min(ratio)), 0.5)
                smallest[name] = min(smallest.get(name, np.inf), limit)
    return smallest


def _mutants(first: Challenge, roles: InputRoles) -> Iterator[Answers]:
    for model in precision.models(first.format):
        if model.way == "inputs":
            yield functools.partial(_narrowed, model)
    yield _stale
    yield _unwritten
    for name, value in first.params.items():
        if isinstance(value, float) and value != 0.0:
            yield functools.partial(_other_param, name)
    definition = first.op.definition
    if definition is not None:
        if roles.first is not None:
            for which in _PARTS:
                yield functools.partial(_left_out, which, roles)
        for fault in _faults(first):
            if first.format.name not in fault.right_in:
                yield functools.partial(_faulty, fault)
    for source in models.of(first.op).questions:
        yield functools.partial(_variants, source, False)
        yield functools.partial(_variants, source, True)


def _faults(challenge: Challenge) -> list[WrongFormula]:
    """The wrong formulas that have a name."""
    question = challenge.direction, challenge.inputs, challenge.params
    return list(faults_of(challenge.op.definition, *question))


def _plain(challenge: Challenge, params: Mapping[str, Any] | None = None) -> Outputs:
    settings = {**challenge.params, **(params or {})}
    return challenge.op.plain(challenge.direction, challenge.inputs, settings, challenge.format)


def _computed(challenge: Challenge, change: Callable[[Any], Any] | None) -> dict[str, Array]:
    """The definition, perhaps changed, in the challenge's format."""
    definition = challenge.op.definition
    assert definition is not None
    formula = next(iter(definition.way(challenge.direction).forms.values()))
    changed = formula if change is None else change(formula)
    question = challenge.direction, changed, challenge.inputs, challenge.params
    return definition.computed(*question, challenge.format)


def _narrowed(model: precision.PrecisionModel, challenge: Challenge) -> dict[str, Outputs]:
    return {f"{model.format.name}_inputs": _plain(precision.narrowed(challenge, model))}


def _stale(challenge: Challenge) -> dict[str, Outputs]:
    """The middle element of each output is its neighbour's."""
    return {"stale_element": {n: _replaced(a, a.size // 2, -1) for n, a in _right(challenge)}}


def _unwritten(challenge: Challenge) -> dict[str, Outputs]:
    """The last element is NaN."""
    return {"unwritten_element": {n: _replaced(a, a.size - 1, 0) for n, a in _right(challenge)}}


def _right(challenge: Challenge) -> Iterator[tuple[str, Array]]:
    for name, right in challenge.standard().rounded.items():
        if right.size > 1:
            yield name, right


def _replaced(right: Array, place: int, offset: int) -> Array:
    """The array with the element at `place` replaced by the one `offset` places on; by NaN if
    `offset` is 0."""
    changed = np.array(right, order="C")
    flat = changed.reshape(-1)
    flat[place] = flat[place + offset] if offset else np.nan
    return changed


def _other_param(name: str, challenge: Challenge) -> dict[str, Outputs]:
    """A float param a little off; an eps of 0, and one ten times larger."""
    value = challenge.params[name]
    others = {f"{name}_differs": value * _FACTOR}
    if name == "eps":
        others = {"eps_missing": 0.0, "eps_differs": 10.0 * value}
    return {
        cause: _plain(challenge, {name: other})
        for cause, other in others.items()
        if _is_question(challenge, {name: other})
    }


def _is_question(challenge: Challenge, params: Mapping[str, Any]) -> bool:
    """Whether the op takes these params: a beta2 of 1.007 is refused."""
    definition = challenge.op.definition
    if definition is not None:
        settings = {**challenge.params, **params}
        try:
            definition.question(challenge.direction, challenge.inputs, settings)
        except ValueError:
            return False
    return True


def _left_out(which: str, roles: InputRoles, challenge: Challenge) -> dict[str, Outputs]:
    """A formula whose sums, or means, are not over all n terms."""
    assert roles.first is not None
    if roles.first not in challenge.inputs:
        return {}
    n = challenge.inputs[roles.first].shape[roles.along[roles.first]]
    if n < 2 or (which == "tail" and n <= _TILE):  # where nothing is left, a largest number is none
        return {}
    start, divisor = _PARTS[which](n)
    kept = np.arange(start)

    def rule(graph: Graph) -> Edits:
        nodes = Program(graph).of(*reductions.SUMMING)
        shorter = (node for node in nodes if reductions.length_of(node) == n)
        return {node: reductions.over_some(node, kept, divisor) for node in shorter}

    return {which: _computed(challenge, lambda formula: Whole(edits.edited(formula, rule)))}


_PARTS: dict[str, Callable[[int], tuple[int, int]]] = {  # the terms of n that are added; a divisor
    "last_term": lambda n: (n - 1, n),
    "tail": lambda n: ((n - 1) // _TILE * _TILE, n),
    "statistics_of_a_part": lambda n: ((n + 1) // 2, (n + 1) // 2),
    "divided_by_n_minus_1": lambda n: (n, n - 1),
}


def _faulty(fault: WrongFormula, challenge: Challenge) -> dict[str, Outputs]:
    formula = getattr(fault, challenge.direction)
    outputs = _computed(challenge, lambda *_: formula)
    right = challenge.standard().rounded
    kept = {n: right[n] for n in outputs if n in right}
    return {fault.cause: {**kept, **fault.changed(outputs)}}


def _variants(source: Any, of_zeros: bool, challenge: Challenge) -> dict[str, Outputs]:
    """The answers to the other questions that `diagnosis` has for this op, those nearest to a right
    answer or to zeros: the padding of a row may be too short to show in any right answer. One whose
    numbers were fitted to the right answer, at a price, is no wrong kernel."""
    right, format = dict(challenge.standard().rounded), challenge.format
    inputs, params = dict(challenge.inputs), dict(challenge.params)
    problem = Problem(challenge.op, challenge.direction, inputs, params, format)
    zeros = {name: np.zeros_like(array) for name, array in right.items()}
    return {
        variant.cause: {
            **right,
            **{n: e.round(format)[0] for n, e in variant.answer.reference.items()},
        }
        for variant in source(problem, zeros if of_zeros else right)
        if of_zeros or not variant.price
    }
