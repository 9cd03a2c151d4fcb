"""explain(): why do these numbers differ from the truth, and from each other?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels import question
from refkernels.arithmetic import formats
from refkernels.arithmetic.mode import in_default_mode
from refkernels.diagnosis import comparison, excerpt, patterns, scoring, sources
from refkernels.diagnosis.explanation import Difference, Explanation, evidence_of
from refkernels.diagnosis.fit import Fit, fit_to_truth
from refkernels.diagnosis.hypothesis import ORDER, Candidate
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.ranking import badness, ranked
from refkernels.metrology import outputs as answered
from refkernels.op import Direction, Op
from refkernels.records.words import VERDICTS
from refkernels.truth import holds


@in_default_mode
@np.errstate(all="ignore")  # models compute where formats end: infinities and NaNs are data
def explain(
    op: str | Op,
    inputs: Mapping[str, Any],
    outputs: Any,
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
) -> Explanation:
    """Why a kernel's outputs, or several kernels', are what they are.

    op         "matmul", "linear", "layernorm", "sin", ... (`refkernels.registry`), or an Op of
               one's own (`refkernels.oracle(...).op`)
    inputs     arrays by the names of the op's signature; for backward the cotangent too
    outputs    {"y": array}, a tuple in the op's order or the first output alone, of one kernel; or
               {"torch": {"y": array}, "paddle": {"y": array}}. Each output is judged in its own
               format (`metrology.outputs`); several kernels' first outputs have one format
    params     the op's parameters: {"eps": 1e-5}
    Raises ValueError for an unknown op or direction, for missing or unknown names and for shapes
    and dtypes that do not fit; TypeError for what is no float array, and for a param that is no
    number.
    """
    record, arrays, settings = question.read(op, inputs, params, direction)
    several = _several(record, direction, outputs)
    problem = _problem(record, arrays, settings, direction, several or {"": outputs})
    if several is None:
        alone = _arrays(problem, outputs)
        explanation = explain_kernel(problem.judging(alone), alone)
        return _with_question(problem, {"kernel": alone}, {"kernel": explanation}, explanation)
    answers = {str(name): _arrays(problem, kernel) for name, kernel in several.items()}
    kernels = {
        name: explain_kernel(problem.judging(answer), answer) for name, answer in answers.items()
    }
    differences = {
        (a, b): comparison.difference(problem, a, b, answers[a], answers[b], kernels[a], kernels[b])
        for a, b in itertools.combinations(answers, 2)
    }
    together = _together(problem, kernels, differences)
    return _with_question(problem, answers, kernels, together)


def one_kernel(
    op: str | Op,
    inputs: Mapping[str, Any],
    outputs: Any,
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
) -> tuple[Problem, dict[str, Array]]:
    """The question and one kernel's outputs by name, as `explain_kernel` takes them."""
    record, given, settings = question.read(op, inputs, params, direction)
    problem = _problem(record, given, settings, direction, {"": outputs})
    arrays = _arrays(problem, outputs)
    return problem.judging(arrays), arrays


@np.errstate(all="ignore")
def explain_kernel(problem: Problem, outputs: Arrays) -> Explanation:
    """One kernel against the truth."""
    fits = {name: _fit_to_truth(problem, name, got) for name, got in outputs.items()}
    found, tried = _candidates(problem, outputs, fits)
    candidates = ranked(problem, outputs, fits, found, tried)
    best = _named(candidates, fits)
    worst = min(fits.values(), key=badness)
    return Explanation(
        problem.op.name,
        problem.direction,
        problem.format.name,
        worst.verdict,
        tuple(dict.fromkeys(flag for one in fits.values() for flag in one.record["flags"])),
        best.cause if best else None,
        best.confidence if best else None,
        evidence_of({name: one.record for name, one in fits.items()}, candidates, tried),
        tuple(candidates),
    )


def _candidates(
    problem: Problem, outputs: Arrays, fits: dict[str, Fit]
) -> tuple[list[Candidate], int]:
    """What became of every hypothesis, and how many (model, parameter) pairs were tried."""
    questions = sources.questions(problem, outputs)
    algorithms = sources.algorithms(problem, outputs, fits)
    found = list(scoring.candidates(problem, outputs, fits, questions))
    models = list(scoring.candidates(problem, outputs, fits, algorithms))
    kept = patterns.reasoned(_merged(found, models))
    return kept, sum(one.trials for one in (*found, *models))


def _merged(found: list[Candidate], models: list[Candidate]) -> list[Candidate]:
    """Variants and models together: a model has the numbers on which all variants of its cause
    agree. One that is ruled out is listed once."""
    numbers: dict[str, dict[str, Any]] = {}
    for one in found:
        shared = numbers.setdefault(one.cause, dict(one.details))
        for key in [key for key, value in shared.items() if one.details.get(key) != value]:
            del shared[key]
    listed = {(one.cause, one.output) for one in found}
    return found + [
        replace(one, details={**numbers.get(one.cause, {}), **one.details})
        for one in models
        if not (one.ruled_out and (one.cause, one.output) in listed)
    ]


def _named(candidates: list[Candidate], fits: dict[str, Fit]) -> Candidate | None:
    """The best candidate. None where it only fits too: a right output needs no cause that few
    elements cannot tell. None where only another output's order of summation was found: that says
    nothing of the output that is wrong."""
    telling = (
        candidate
        for candidate in candidates
        if not candidate.ruled_out
        and not (fits[candidate.output].ordinary and candidate.confidence == "consistent")
    )
    best = next(telling, None)
    if best is None or best.cause != ORDER or not fits[best.output].ordinary:
        return best
    return best if all(one.ordinary for one in fits.values()) else None


def _fit_to_truth(problem: Problem, name: str, got: Array) -> Fit:
    result = fit_to_truth(problem, name, got)
    if result is None:
        right = problem.truth.reference[name].shape
        raise ValueError(f"{name} has shape {got.shape}, and {problem.op.name}'s is {right}.")
    return result


def _with_question(
    problem: Problem,
    answers: Mapping[str, Arrays],
    kernels: Mapping[str, Explanation],
    explanation: Explanation,
) -> Explanation:
    """With what was asked among the evidence, as far as it fits in a script."""
    worst = {name: one.evidence["outputs"] for name, one in kernels.items()}
    places = excerpt.worst_places(problem, answers, worst)
    asked = excerpt.question(problem, answers, places)
    evidence: dict[str, Any] = {**explanation.evidence, "question": asked}
    if explanation.kernels:
        evidence["kernels"] = {name: one.evidence for name, one in kernels.items()}
        evidence["differences"] = [one.to_dict() for one in explanation.differences.values()]
    return replace(explanation, evidence=evidence)


def _together(
    problem: Problem,
    kernels: dict[str, Explanation],
    differences: dict[tuple[str, str], Difference],
) -> Explanation:
    worst = min(kernels.values(), key=lambda one: VERDICTS.index(one.verdict))
    return Explanation(
        problem.op.name,
        problem.direction,
        problem.format.name,
        worst.verdict,
        tuple(dict.fromkeys(flag for one in kernels.values() for flag in one.flags)),
        worst.cause,
        worst.confidence,
        {},
        (),
        kernels,
        differences,
    )


def _problem(
    op: Op,
    inputs: dict[str, Array],
    params: Mapping[str, Any],
    direction: Direction,
    kernels: Mapping[str, Any],
) -> Problem:
    """The question, in the format of the first output of the first kernel."""
    first = answered.named(op, direction, next(iter(kernels.values())))
    format = formats.of(next(iter(first.values())))
    return Problem(op, direction, inputs, {**op.params, **params}, format)


def _arrays(problem: Problem, outputs: Any) -> dict[str, Array]:
    """A kernel's outputs by name. The first output in the problem's format: what is narrower is
    widened, which is exact."""
    op, direction = problem.op, problem.direction
    arrays = answered.named(op, direction, outputs)
    if empty := [name for name, array in arrays.items() if not array.size]:
        raise ValueError(f"{empty[0]} has no elements, so there is nothing to explain.")
    first = {name: arrays[name] for name in op.names(direction)[:1] if name in arrays}
    for name, array in first.items():
        if not holds(problem.format, first):
            raise ValueError(
                f"{name} is {array.dtype} where the first kernel's is {problem.format.name}: one "
                "explanation is about one format."
            )
        arrays[name] = array.astype(problem.format.storage)
    shapes = {name: one.shape for name, one in problem.truth.reference.items()}
    return answered.without_kept_axes(op, direction, arrays, shapes)


def _several(op: Op, direction: Direction, outputs: Any) -> Mapping[str, Any] | None:
    """What each kernel answered, by its name; None where these are one kernel's outputs."""
    if not isinstance(outputs, Mapping):
        return None
    if not outputs:
        raise ValueError("outputs is empty: give at least one kernel's answer.")
    names = op.names(direction)
    nested = [
        isinstance(value, Mapping) or (isinstance(value, tuple) and name not in names)
        for name, value in outputs.items()
    ]
    if any(nested) and not all(nested):
        raise ValueError("outputs mixes arrays and kernels: give one kernel's arrays, or kernels.")
    if empty := [name for name, one in outputs.items() if all(nested) and not one]:
        raise ValueError(f"{empty[0]} answers nothing: give at least one array.")
    return outputs if all(nested) else None
