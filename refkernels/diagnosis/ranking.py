"""Ranks the hypotheses that fit, and sets the confidence of each.

Hypotheses of one output are compared by the code lengths that they leave, on the units where their
predictions differ. One that another beats by 20 bits is ruled out; of the others, only what they
share is known: a common cause, equal numbers, and the interval of numbers that differ. Of a factor,
another cause says why, unless it has many reasons (`multiples`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from refkernels.diagnosis import evidence, multiples
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import HARMLESS, ORDER, VALUE, Candidate, Evidence
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.records.words import CONFIDENCES, INSIDE, OR, VERDICTS, Confidence

_INTERVAL = "interval"
# Details that are not known where they differ.
_FITTED = {"fitted", "several"}  # a number without a name
_OWN_DETAILS = ("statement", "threads", "with", "constants", "names", "computed_in", "ties")
# The first says what the others say, and more: a class of both is sure of the others.
STRONGER = {
    "fp16_inputs": {"tf32_inputs", "intermediate_rounded", "wrong_dtype"},  # TF32's bits, its range
    "bf16_inputs": {"intermediate_rounded", "wrong_dtype"},  # all inputs; one, or the outputs
    "narrow_intermediates": {  # all, or one, or the sums
        *("intermediate_rounded", "bias_after_rounding", "bf16_accumulation", "fp16_accumulation"),
    },
    "intermediate_rounded": {"bias_after_rounding", "wrong_dtype"},  # any; the sum; the outputs
}
_IMPLIED = {"narrow_intermediates": "low_precision_statistics"}  # of all results, of some


@dataclass(frozen=True, eq=False)
class _WeighedCandidate:
    """A candidate that fits, the code that it leaves to each unit, and its parameters' cost."""

    candidate: Candidate
    left: Doubles
    charge: float

    @property
    def bits(self) -> Array | None:
        """Its prediction of every bit, None for a pattern."""
        prediction = self.candidate.prediction
        return None if prediction is None else prediction.bits

    @property
    def cost(self) -> float:
        return float(np.sum(self.left)) + self.charge


def ranked(
    problem: Problem,
    outputs: Arrays,
    fits: dict[str, Fit],
    unranked: Sequence[Candidate],
    tried: int,
) -> list[Candidate]:
    """All candidates with their evidence and confidence, best first. `tried`: the number of (model,
    parameter) pairs that they are chosen from."""
    weighed: list[Candidate] = []
    shown = partial(multiples.shown_elsewhere, problem, outputs, fits, unranked)
    for name, got in outputs.items():
        of_output = [candidate for candidate in unranked if candidate.output == name]
        weighed += _ranked_output(problem, got, fits[name], of_output, tried, shown)
    weighed = _across_outputs(problem, weighed, fits)
    fitting = [c for c in weighed if not c.ruled_out]
    causes = Counter(cause for cause, _ in {(c.cause, c.output) for c in fitting})
    same_details = Counter(key for key, _ in {(_definition(c), c.output) for c in fitting})
    refuted = {  # other questions that have no bit of an output that is correctly rounded
        _definition(one)
        for one in weighed
        if one.model is None and fits[one.output].exact and not one.equal and one.elements > 0
    }
    return sorted(
        [replace(candidate, prediction=None) for candidate in weighed],
        key=lambda candidate: _rank(
            candidate,
            fits[candidate.output],
            causes[candidate.cause],
            same_details[_definition(candidate)],
            _definition(candidate) in refuted,
        ),
    )


def agree(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether the details of two candidates of a cause say the same, but for how many elements."""
    return all(a[name] == b[name] for name in a.keys() & b.keys() - {"wrong"})


def _definition(candidate: Candidate) -> str:
    return f"{candidate.cause} {sorted(map(repr, candidate.details.items()))}"


def _across_outputs(
    problem: Problem, weighed: list[Candidate], fits: dict[str, Fit]
) -> list[Candidate]:
    """The candidates of all outputs of one kernel. Where one output cannot tell causes apart, the
    cause that another output proves counts. Another definition of the op is at most consistent
    where a second wrong output refutes it and has no sure cause of its own."""
    possible = [c for c in weighed if not c.ruled_out]  # also with another cause
    fitting = {(cause, c.output) for c in possible for cause in (c.cause, *c.details)}
    definitions = {fault.cause for fault in problem.faults}
    listed = {(c.cause, c.output) for c in weighed if c.model is None}
    proven = {c.cause: c.details for c in weighed if c.confidence == "proven"}
    sure = {c.output for c in weighed if c.confidence in ("proven", "matched")}
    open_outputs = [name for name, fit in fits.items() if not fit.ordinary and name not in sure]
    unasked = problem.truth.reference.keys() - fits.keys()

    def counted(candidate: Candidate) -> Candidate:
        cause, own_evidence = candidate.cause, candidate.evidence
        if "in_steps" in candidate.details and (unasked or open_outputs):
            return replace(candidate, confidence="consistent")  # another output may tell more
        if candidate.ruled_out or own_evidence is None or cause in HARMLESS:
            return candidate
        refuted = {(cause, name) for name in open_outputs} & listed - fitting
        if cause in definitions and refuted:
            return replace(candidate, confidence="consistent")
        tied = candidate.confidence != candidate.evidence_confidence
        alone = not (set(own_evidence.survivors) - {cause}) & set(proven)
        details, known = candidate.details, proven.get(cause, {})
        if tied and alone and cause in proven and agree(details, known):
            return replace(
                candidate,
                confidence=candidate.evidence_confidence,
                details={**candidate.details, **proven[cause]},
                evidence=replace(own_evidence, survivors=(cause,)),
            )
        return candidate

    return [counted(candidate) for candidate in weighed]


def badness(fit: Fit) -> tuple[float, ...]:
    """A key to sort outputs by, worst first."""
    return (float(VERDICTS.index(fit.verdict)), -fit.over_bound, -fit.over_plain)


def _ranked_output(
    problem: Problem,
    got: Array,
    truth: Fit,
    candidates: list[Candidate],
    tried: int,
    shown: Callable[[Candidate], frozenset[str]],
) -> list[Candidate]:
    weighable = [candidate for candidate in candidates if candidate.prediction is not None]
    if not weighable:
        return candidates
    observed = evidence.observe(problem, got, truth)
    weighable = _without_twins(_without_blame(weighable) if truth.fine else weighable)
    weighed = [_weighed(observed, candidate, tried) for candidate in weighable]
    patterns = [rival.candidate for rival in weighed if rival.bits is None]
    survivors, beaten = _survivors(observed, [rival for rival in weighed if rival.bits is not None])
    known = _known_causes(survivors, shown)
    named = [_named(candidate, survivors, known) for candidate in survivors]
    named = _beside_one_another(named, _of_patterns(patterns))
    blamed = {c.model for c in named if c.cause != ORDER and c.confidence != "consistent"}
    kept = [c for c in named if c.cause != ORDER or c.model not in blamed]
    unweighed = [candidate for candidate in candidates if candidate.prediction is None]
    kept = [replace(c, confidence="consistent") if _fits_worse(c, unweighed) else c for c in kept]
    return kept + [replace(rival.candidate, confidence=None) for rival in beaten] + unweighed


def _fits_worse(candidate: Candidate, unweighed: Sequence[Candidate]) -> bool:
    """Whether another cause, which no bits can weigh, leaves an error clearly smaller."""
    others = (c for c in unweighed if c.cause != candidate.cause and not c.ruled_out)
    return candidate.over_plain is not None and any(
        c.over_plain is not None and not candidate.fits_as_well_as(c) for c in others
    )


def _without_blame(candidates: list[Candidate]) -> list[Candidate]:
    """Where a harmless model reproduces an output bit by bit, a fault counts only where it differs
    from that model: a right kernel gives these bits too, unless they are beyond the bound. A bias
    too small to change a rounding may or may not be missing."""
    harmless = next((c for c in candidates if c.cause in HARMLESS and c.exact), None)
    if harmless is None:
        return candidates
    assert harmless.prediction is not None
    bits = harmless.prediction.bits
    return [c if c.cause in HARMLESS else c.against(bits) for c in candidates]


def _without_twins(candidates: list[Candidate]) -> list[Candidate]:
    """The candidates without another value of a param where that is a named definition: a momentum
    of 0.9 for 0.1 is the other convention, ord = 1 for 2 the other norm. Results that change in
    steps may be those of either."""

    def is_value(c: Candidate) -> bool:
        return c.cause == VALUE or c.details.get(c.details.get("solved", "")) == 0.0

    other = (c for c in candidates if c.cause not in (multiples.FACTOR, *HARMLESS))
    named = [c.prediction.bits for c in other if c.prediction and not is_value(c)]

    def has_a_name(candidate: Candidate) -> bool:
        own = candidate.prediction.bits if candidate.prediction else None
        return own is not None and any(b is not None and evidence.same(b, own).all() for b in named)

    stays = (not is_value(c) or "in_steps" in c.details or not has_a_name(c) for c in candidates)
    return [*itertools.compress(candidates, stays)]


def _weighed(observed: evidence.Observed, candidate: Candidate, tried: int) -> _WeighedCandidate:
    earned = observed.bits_of(candidate)
    highest = float(np.max(observed.units.earned(observed.lengths), initial=0.0))
    counted = evidence.weighed(candidate, earned, observed.units.count, tried)
    charge = candidate.price + candidate.parameters * highest
    return _WeighedCandidate(replace(candidate, evidence=counted), observed.left(candidate), charge)


def _survivors(
    observed: evidence.Observed, weighed: list[_WeighedCandidate]
) -> tuple[list[Candidate], list[_WeighedCandidate]]:
    """The candidates that the best does not rule out, and those that it does. A factor with many
    reasons has no algorithm of its own, so only answers rule it out: it could multiply any
    algorithm's bits."""
    if not weighed:
        return [], []
    best = min(weighed, key=lambda rival: rival.cost)
    answers = [rival for rival in weighed if rival.candidate.model is None]
    answer = min(answers, key=lambda rival: rival.cost, default=best)
    survivors, beaten = list[Candidate](), list[_WeighedCandidate]()
    for rival in weighed:
        nearest = answer if multiples.many(rival.candidate) else best
        if _bits_behind(observed, rival, nearest) < Evidence.APART:
            survivors.append(rival.candidate)
        else:
            beaten.append(rival)
    return survivors, beaten


def _bits_behind(
    observed: evidence.Observed, other: _WeighedCandidate, best: _WeighedCandidate
) -> float:
    """By how many bits a hypothesis is worse than the best, where their predictions differ."""
    assert other.bits is not None
    assert best.bits is not None
    differ = observed.units.chosen(np.logical_not(evidence.same(other.bits, best.bits)))
    where = observed.units.any(differ)
    return float(np.sum((other.left - best.left)[where]))


def _known_causes(
    survivors: list[Candidate], shown: Callable[[Candidate], frozenset[str]]
) -> set[str]:
    """The causes that a class may be sure of: the one reason that its members share, or else the
    factor by which the output is off."""
    reasons = {candidate.cause for candidate in survivors} - {*HARMLESS, multiples.FACTOR}
    if not reasons:
        return {*HARMLESS, multiples.FACTOR}
    reasons -= {cause for cause in reasons if _goes_beyond(cause, survivors, reasons)}
    reasons -= {cause for cause in reasons if STRONGER.get(cause, set()) & reasons}
    # A fitted number that is too precise to be chance is no rival of a cause without one.
    named = [c for c in survivors if c.cause in reasons and not _FITTED & c.details.keys()]
    most = min((one.price for one in named), default=math.inf) + Evidence.APART
    possible = {one.cause for one in survivors if one in named or one.price < most}
    reasons = reasons & possible or reasons
    factors = [candidate for candidate in survivors if candidate.cause == multiples.FACTOR]
    shared = len(reasons) == 1 and all(reasons <= shown(factor) for factor in factors)
    return reasons if shared else {multiples.FACTOR}


def _goes_beyond(cause: str, survivors: list[Candidate], reasons: set[str]) -> bool:
    """Whether a cause fits only together with another of the class, which is what they share."""
    of_cause = (candidate.details for candidate in survivors if candidate.cause == cause)
    return all(reasons & {details.get("with"), *details} - {cause} for details in of_cause)


def _named(candidate: Candidate, survivors: list[Candidate], known: Container[str]) -> Candidate:
    """The candidate with its confidence, its class, and the numbers that the class shares."""
    causes = dict.fromkeys((candidate.cause, *(other.cause for other in survivors)))
    own = candidate.evidence_confidence
    confidence: Confidence = own if candidate.cause in known else "consistent"
    members = [other.details for other in survivors if other.cause == candidate.cause]
    fitted = "solved" in candidate.details and "fitted" in candidate.details
    if fitted or len({other.get("param") for other in members}) > 1:
        confidence = "consistent"  # a number without a name, or one of several params
    assert candidate.evidence is not None
    counted = replace(candidate.evidence, survivors=tuple(causes))
    return replace(
        candidate,
        confidence=confidence,
        details=_shared_details(candidate.details, members),
        evidence=counted,
    )


def _beside_one_another(named: list[Candidate], patterns: list[Candidate]) -> list[Candidate]:
    """The algorithms and the patterns. An algorithm that is blamed is consistent where a pattern
    that is proven says as much: the elements where it is wrong do not show how the others are
    computed. So is a pattern where a blamed algorithm says more; and another question where an
    algorithm that is shown in any order of its sums says as much."""

    def earned(candidate: Candidate) -> float:
        return candidate.price + (candidate.evidence.bits if candidate.evidence else 0.0)

    blamed = (c for c in named if c.model is not None and c.cause not in HARMLESS)
    proven = [pattern for pattern in patterns if pattern.confidence == "proven"]
    behind = {
        id(algorithm if less else pattern)
        for algorithm, pattern in itertools.product(blamed, proven)
        if (less := earned(algorithm) < earned(pattern) + Evidence.APART)
        or algorithm.cause != pattern.cause
    }
    behind |= {
        id(question)
        for question, pattern in itertools.product(named, patterns)
        if question.model is None and pattern.model and question.cause != pattern.cause
        if earned(question) < 2.0 * earned(pattern) + Evidence.APART  # by 1 / t², not 1 / t
    }
    both = *named, *patterns
    return [replace(c, confidence="consistent") if id(c) in behind else c for c in both]


def _of_patterns(patterns: list[Candidate]) -> list[Candidate]:
    """The patterns with their confidence. All mark the same wrong elements: of two causes,
    neither is sure, and neither has more evidence."""
    shown = (pattern for pattern in patterns if pattern.evidence_confidence != "consistent")
    implied = {_IMPLIED.get(pattern.cause) for pattern in shown}
    patterns = [pattern for pattern in patterns if pattern.cause not in implied]
    causes = tuple(dict.fromkeys(pattern.cause for pattern in patterns))
    least = min((pattern.evidence.bits for pattern in patterns if pattern.evidence), default=0.0)
    named = []
    for pattern in patterns:
        assert pattern.evidence is not None
        others = (cause for cause in causes if cause != pattern.cause)
        bits = pattern.evidence.bits if len(causes) == 1 else max(least, 0.0)
        weighed = replace(pattern.evidence, bits=bits, survivors=(pattern.cause, *others))
        sure = pattern.evidence_confidence if len(causes) == 1 else "consistent"
        named.append(replace(pattern, confidence=sure, evidence=weighed))
    return named


def _shared_details(details: Any, members: list[Any]) -> dict[str, Any]:
    """A candidate's details, with the interval of a number in which the members differ, and with
    each text of which one is true: "float16 or tf32". A number in another interval is another way
    to say it: 0.2 added to a mean, and 30 to the sum."""
    shared: dict[str, Any] = {}
    members = [other for other in members if _meet(details, other)]
    for key, value in details.items():
        values = [other.get(key) for other in members]
        if key == _INTERVAL or all(other == value for other in values):
            shared.setdefault(key, value)
        elif all(isinstance(other, float) for other in values):
            ends = [other.get(_INTERVAL, [other[key]]) for other in members]
            widest = [min(low for low, *_ in ends), max(high for *_, high in ends)]
            shared |= {key: value, "solved": key, "several": True, _INTERVAL: widest}
        elif key not in _OWN_DETAILS:
            named = [other for other in values if other]
            all_texts = all(isinstance(other, str) for other in named)
            shared[key] = OR.join(dict.fromkeys(named)) if all_texts else value
    return shared


def _meet(details: Any, other: Any) -> bool:
    """Whether the intervals of two solved numbers do, if both have one."""
    (low, high), (least, most) = (d.get(_INTERVAL, [-math.inf, math.inf]) for d in (details, other))
    return bool(low <= most and least <= high)


def _rank(
    candidate: Candidate, truth: Fit, causes: int, same_details: int, refuted: bool
) -> tuple[float, ...]:
    """A key to sort candidates by, best first:

    wrong outputs, the worst first; confidence; no fitted number; more than an order of summation
    (an order, where the candidate is merely consistent and the output within its bound: a right
    kernel is not blamed without evidence); not refuted by another output; the number of outputs
    that the cause fits, and that it fits with the same details; the description, if unproven; the
    bits reproduced, and the error that is left.
    """
    confidence, inside = candidate.confidence, truth.verdict in INSIDE
    described = candidate.price + math.log2(max(candidate.trials, 1))
    error = math.inf if candidate.over_plain is None else candidate.over_plain
    if confidence == "consistent" and error < math.inf:  # the nearest size
        error = abs(math.log(error)) if error > 0.0 else math.inf
    missed = 1.0 - candidate.equal / max(candidate.elements, 1)
    sized = (error, missed) if confidence == "consistent" else (missed, error)
    return (
        float(candidate.ruled_out),
        float(truth.ordinary),
        *((0.0,) * 3 if truth.ordinary else badness(truth)),
        float(len(CONFIDENCES) if confidence is None else CONFIDENCES.index(confidence)),
        float(bool(candidate.details.get("fitted"))),
        float((candidate.cause == ORDER) != (inside and confidence == "consistent")),
        float(refuted),
        float(candidate.evidence_confidence == "consistent"),  # no more evidence than chance gives
        -float(causes),
        -float(same_details),
        described if confidence == "consistent" else 0.0,
        *sized,
        float(-candidate.equal),  # of two reproduced outputs, the larger one says more
    )
