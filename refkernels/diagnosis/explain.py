"""explain(): why numbers differ from the truth, and from each other."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels import question
from refkernels.arithmetic import formats, mode
from refkernels.arithmetic.blas import on_one_thread
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.diagnosis import comparison, excerpt, part, patterns, scoring, sources, two_causes
from refkernels.diagnosis.edits import blocks, views
from refkernels.diagnosis.edits import search as edits
from refkernels.diagnosis.explanation import Difference, Explanation, evidence_of
from refkernels.diagnosis.fit import Fit, fit_to_truth
from refkernels.diagnosis.hypothesis import HARMLESS, ORDER, VALUE, Candidate, Questions
from refkernels.diagnosis.multiples import FACTOR
from refkernels.diagnosis.problem import READABLE, Array, Arrays, Problem
from refkernels.diagnosis.ranking import agree, badness, ranked
from refkernels.diagnosis.variants import elsewhere
from refkernels.diagnosis.wrong import judged_wrong, places
from refkernels.metrology import outputs as answered
from refkernels.metrology.no_part import with_nan
from refkernels.op import Direction, Op
from refkernels.ops.kept_questions import questions_kept
from refkernels.records.words import SURE, VERDICTS
from refkernels.truth import holds

_TOLD = ("range_limited", "uncertified")  # verdicts that name the cause, or leave nothing to find


@with_default_fenv
@np.errstate(all="ignore")  # models leave the range of formats: infinities and NaNs are data
def explain(
    op: str | Op,
    inputs: Mapping[str, Any],
    outputs: Any,
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
) -> Explanation:
    """Why the outputs of one or several kernels are what they are.

    op         "matmul", "linear", "layernorm", "sin", ... (`refkernels.registry`), or your own Op
               (`refkernels.oracle(...).op`)
    inputs     arrays by the names of the op's signature; for backward the cotangent too. Or each
               kernel's own, {"torch": {"x": array}, ...}; they must have the same bits
    outputs    one kernel's {"y": array}, tuple in the op's order, or first output alone; or several
               kernels' by name, {"torch": {"y": array}, "paddle": array}. Each output is judged in
               its own format (`metrology.outputs`); the kernels' first outputs share one format
    params     the op's parameters: {"eps": 1e-5}
    Raises ValueError for an unknown op or direction, for missing or unknown names, and for wrong
    shapes or dtypes; TypeError for anything but a float array, and for a param that is no number.
    """
    given = inputs.values() if isinstance(inputs, Mapping) else ()
    if given and all(isinstance(value, Mapping) for value in given):
        inputs = question.shared(inputs)
    record, arrays, settings = question.read(op, inputs, params, direction)
    by_kernel = _by_kernel(record, direction, outputs)
    problem = _problem(record, arrays, settings, direction, by_kernel or {"": outputs})
    if by_kernel is None:
        single = _arrays(problem, outputs)
        explanation = explain_kernel(problem.judging(single), single)
        return _with_question(problem, {"kernel": single}, {"kernel": explanation}, explanation)
    answers = {str(name): _arrays(problem, kernel) for name, kernel in by_kernel.items()}
    kernels = {
        name: explain_kernel(problem.judging(answer), answer) for name, answer in answers.items()
    }
    differences = {
        (a, b): comparison.difference(problem, a, b, answers, kernels)
        for a, b in itertools.combinations(answers, 2)
    }
    together = _summary_of(kernels, differences)
    return _with_question(problem, answers, kernels, together)


def one_kernel(
    op: str | Op,
    inputs: Mapping[str, Any],
    outputs: Any,
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
    truth: answered.Asked | None = None,
) -> tuple[Problem, dict[str, Array]]:
    """The question and one kernel's outputs by name, as `explain_kernel` takes them. `truth`: what
    the oracle has already said of this question."""
    record, arrays, settings = question.read(op, inputs, params, direction)
    problem = _problem(record, arrays, settings, direction, {"": outputs}).known(truth)
    answers = _arrays(problem, outputs)
    return problem.judging(answers).known(truth), answers


@np.errstate(all="ignore")
@on_one_thread()  # once, not in each of hundreds of readings
@questions_kept()
def explain_kernel(
    problem: Problem, outputs: Arrays, known: Questions = edits.explaining
) -> Explanation:
    """One kernel against the truth. `known`: the edits that explain it, where they are known."""
    began, read = time.perf_counter(), problem.read["edits"]
    outputs = {name: _with_nan(problem, name, got) for name, got in outputs.items()}
    fits = {name: _fit_to_truth(problem, name, got) for name, got in outputs.items()}
    checked = {name: got for name, got in outputs.items() if fits[name].verdict not in _TOLD}
    if (smaller := _of_a_part(problem, checked, fits)) is not None:
        told = {**smaller.evidence, "seconds": round(time.perf_counter() - began, 2)}
        return replace(smaller, evidence=told)
    unranked, tried = _candidates(problem, checked, fits) if checked else ([], 0)
    listed = tried
    candidates = ranked(problem, outputs, fits, unranked, tried)
    others = _unexplained(checked, fits, candidates)
    for source in (known, views.other_views, views.other_ops, blocks.in_one_block):
        edited = list(scoring.candidates(problem, others, fits, source(problem, others)))
        if edited:
            unranked = patterns.drop_unexplained([*unranked, *edited])
            tried += max(candidate.trials for candidate in edited)
            candidates = ranked(problem, outputs, fits, unranked, tried)
        # Of one block, one value throughout or a few accidents say more.
        others = _without_candidates(others, candidates if source is views.other_ops else edited)
    best = _best_candidate(problem, candidates, fits)
    explained = {c.output for c in candidates if best is not None and not c.ruled_out}
    left: Arrays = {n: y for n, y in checked.items() if n not in explained and not fits[n].ordinary}
    if not (sure := best is not None and best.confidence in SURE):
        candidates = [*two_causes.found(problem, left, explain_kernel), *candidates]
    left = _without_candidates(left, candidates)
    firsts = two_causes.first_of_two(problem, candidates, fits, left, explain_kernel)
    candidates = [*candidates, *firsts] if sure else [*firsts, *candidates]
    best = _best_candidate(problem, candidates, fits)
    return Explanation(
        problem.op.name,
        problem.direction,
        problem.format.name,
        *_judged(fits),
        best.cause if best else None,
        best.confidence if best else None,
        evidence_of(
            {name: fit.record for name, fit in fits.items()},
            listed + problem.read["edits"] - read,
            round(time.perf_counter() - began, 2),
        ),
        tuple(candidates),
    )


def _without_candidates(outputs: Arrays, candidates: list[Candidate]) -> Arrays:
    """The outputs that no candidate explains."""
    explained = {c.output for c in candidates if not c.ruled_out}
    return {name: got for name, got in outputs.items() if name not in explained}


def _of_a_part(problem: Problem, outputs: Arrays, fits: dict[str, Fit]) -> Explanation | None:
    """What explains a part of a large question; None where nothing does, or where single elements
    or blocks are wrong, whose places in the whole tell more."""
    wrong = {name: got for name, got in outputs.items() if not fits[name].ordinary} or outputs
    shift = 3 * problem.op.function  # a function's elements say as much, each alone
    claims = patterns.find(problem, wrong, False) if problem.size > part.LARGEST >> shift else ()
    located = not claims or any(claim.cause in patterns.PLACES for claim in claims)
    smaller = None if located or not wrong else part.of(problem, wrong)
    explanation = None if smaller is None else explain_kernel(*smaller)
    if smaller is None or explanation is None or explanation.cause is None:
        problem.read["parts"] += smaller is not None
        return None
    if any(_is_renumbered(c, outputs, smaller[1]) for c in explanation.candidates):
        return None
    if explanation.confidence not in SURE and problem.size <= READABLE >> shift:
        return None  # all of it may tell more
    evidence = {
        **explanation.evidence,
        "outputs": {name: fit.record for name, fit in fits.items()},
        "part": {"elements": smaller[0].size, "of": problem.size},
    }
    verdict, flags = _judged(fits)
    return replace(explanation, verdict=verdict, flags=flags, evidence=evidence)


def _is_renumbered(candidate: Candidate, whole: Arrays, part: Arrays) -> bool:
    """Whether the indices of a block are those of a part."""
    shapes = whole[candidate.output].shape, part[candidate.output].shape
    block = str(candidate.details.get("block", ""))
    told = block.partition("[")[2].rstrip("]").split(", ")
    return any(text not in ("", ":") and n != m for text, n, m in zip(told, *shapes, strict=False))


def _judged(fits: dict[str, Fit]) -> tuple[str, tuple[str, ...]]:
    """The worst verdict on the outputs, and all their flags."""
    flags = dict.fromkeys(flag for fit in fits.values() for flag in fit.record["flags"])
    return min(fits.values(), key=badness).verdict, tuple(flags)


def _candidates(
    problem: Problem, outputs: Arrays, fits: dict[str, Fit]
) -> tuple[list[Candidate], int]:
    """The candidates of all hypotheses, and the number of (model, parameter) pairs tried."""
    shown = patterns.find(problem, outputs)
    questions = itertools.chain(shown, sources.variants(problem, outputs))
    algorithms = sources.algorithms(problem, outputs, fits)
    variants = list(scoring.candidates(problem, outputs, fits, questions))
    models = list(scoring.candidates(problem, outputs, fits, algorithms))
    weighable = {c.output for c in (*variants, *models) if c.prediction is not None}
    weighable |= {name for name, fit in fits.items() if fit.ordinary}
    others = {name: got for name, got in outputs.items() if name not in weighable}
    for source in (elsewhere.moved_outputs, views.other_settings):
        variants += scoring.candidates(problem, others, fits, source(problem, others))
    kept = patterns.drop_unexplained(_merged(variants, models))
    return kept, sum(candidate.trials for candidate in (*variants, *models))


def _unexplained(outputs: Arrays, fits: dict[str, Fit], candidates: list[Candidate]) -> Arrays:
    """The wrong outputs of which no candidate is sure, but for where it is wrong, or for a factor
    that has no reason; unless the range of a format explains them, or all of them is explained by
    what nothing here can weigh: beside that rival, no edit could be sure."""

    def of_all(details: Mapping[str, Any]) -> bool:  # an overflow may be of some wrong elements
        return details.get("overflows") in (None, details.get("wrong"))

    sure = {
        c.output
        for c in candidates
        if (c.cause in patterns.OF_RANGE and not c.ruled_out and of_all(c.details))
        or (c.prediction is None and c.confidence and c.cause == VALUE)
        or (c.confidence in SURE and c.cause not in patterns.PLACES)
        if not ("fitted" in c.details and c.cause == FACTOR)
    }
    return {n: got for n, got in outputs.items() if n not in sure and not fits[n].ordinary}


def _merged(variants: list[Candidate], models: list[Candidate]) -> list[Candidate]:
    """Variants and models together. A model gets the numbers on which all variants of its cause
    agree. A model that is ruled out is dropped where a variant of its cause is listed."""
    numbers: dict[str, dict[str, Any]] = {}
    for variant in variants:
        shared = numbers.setdefault(variant.cause, dict(variant.details))
        for key in [key for key, value in shared.items() if variant.details.get(key) != value]:
            del shared[key]
    listed = {(variant.cause, variant.output) for variant in variants}
    return variants + [
        replace(model, details={**numbers.get(model.cause, {}), **model.details})
        for model in models
        if not (model.ruled_out and (model.cause, model.output) in listed)
    ]


def _best_candidate(
    problem: Problem, candidates: list[Candidate], fits: dict[str, Fit]
) -> Candidate | None:
    """The best candidate that pays for its description. An ordinary output needs no cause that is
    merely consistent. An output inside its bound needs none that a single sum alone supports. No
    order of summation leads beyond the bound, which holds for all of them. None if only the order
    of summation of an ordinary output fits: that explains no wrong output."""
    of_sums = not problem.op.elementwise  # an unlucky order may give a single one
    chance = {n for n, f in fits.items() if f.ordinary or (f.fine and f.elements == 1 and of_sums)}
    eligible = (
        candidate
        for candidate in candidates
        if not candidate.ruled_out
        and not (candidate.output in chance and candidate.confidence == "consistent")
        and (candidate.may_be_told or candidate.cause in patterns.PLACES)
        and not (candidate.cause in HARMLESS and not fits[candidate.output].fine)
    )
    best = next(eligible, None)
    if best is not None and best.confidence == "consistent":
        same = (c for c in candidates if c.cause == best.cause and c.confidence in SURE)
        sure = (c for c in same if not fits[c.output].ordinary and agree(c.details, best.details))
        best = next(sure, best)  # what another output is sure of
    if best is None or best.cause != ORDER or not fits[best.output].ordinary:
        return best
    return best if all(fit.ordinary for fit in fits.values()) else None


def _with_nan(problem: Problem, name: str, got: Array) -> Array:
    exact = problem.truth.reference[name]
    if exact.shape != got.shape:
        return got
    question = problem.op, problem.direction, name, got, exact
    return with_nan(*question, problem.inputs, problem.params)


def _fit_to_truth(problem: Problem, name: str, got: Array) -> Fit:
    result = fit_to_truth(problem, name, got)
    if result is None:
        expected = problem.truth.reference[name].shape
        raise ValueError(f"{name} has shape {got.shape}, and {problem.op.name}'s is {expected}.")
    if result.fine or not (wrong := judged_wrong(problem, name, got)).any():
        return result
    return replace(result, record={**result.record, "wrong": places(wrong)})


def _with_question(
    problem: Problem,
    answers: Mapping[str, Arrays],
    kernels: Mapping[str, Explanation],
    explanation: Explanation,
) -> Explanation:
    """The explanation with the question in its evidence, as far as a script can carry it."""
    worst = {name: kernel.evidence["outputs"] for name, kernel in kernels.items()}
    places = excerpt.worst_places(problem, answers, worst)
    carried = excerpt.question(problem, answers, places)
    evidence: dict[str, Any] = {**explanation.evidence, "question": carried}
    if mode.flushing():
        evidence["flushes"] = mode.since() or ""
    return replace(explanation, evidence=evidence)


def _summary_of(
    kernels: dict[str, Explanation], differences: dict[tuple[str, str], Difference]
) -> Explanation:
    """That of the worst kernel, with the flags of all."""
    worst = min(kernels.values(), key=lambda kernel: VERDICTS.index(kernel.verdict))
    flags = tuple(dict.fromkeys(flag for kernel in kernels.values() for flag in kernel.flags))
    several = replace(worst, kernels=kernels, differences=differences)
    return replace(several, flags=flags, evidence={}, candidates=())


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
    """A kernel's outputs by name. A first output that is narrower than the problem's format is
    widened to it, which is exact."""
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
    shapes = {name: exact.shape for name, exact in problem.truth.reference.items()}
    return answered.without_kept_axes(op, direction, arrays, shapes)


def _by_kernel(op: Op, direction: Direction, outputs: Any) -> Mapping[str, Any] | None:
    """Each kernel's answers by its name; None where these are one kernel's outputs."""
    if not isinstance(outputs, Mapping):
        return None
    if not outputs:
        raise ValueError("outputs is empty: give at least one kernel's answer.")
    nested = [isinstance(value, Mapping) for value in outputs.values()]
    kernels = all(nested) or not outputs.keys() & set(op.names(direction))
    if any(nested) and not kernels:
        raise ValueError("outputs mixes arrays and kernels: give one kernel's arrays, or kernels.")
    for name, answers in outputs.items() if kernels else ():
        if isinstance(answers, Mapping | tuple) and not answers:
            raise ValueError(f"{name} answers nothing: give at least one array.")
    return outputs if kernels else None
