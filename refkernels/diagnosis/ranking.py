"""Which of the hypotheses that fit is named, and how sure that is.

Hypotheses of one output are compared by the code that they leave, on the units where they say
different things: what another beats by 20 bits is ruled out. Those that remain are one class, which
the data cannot tell apart, and what its members share is what is known: their cause, if it is one,
and of their numbers the equal ones and the interval of the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refkernels.diagnosis import evidence
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import HARMLESS, ORDER, Candidate, Evidence
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.records.words import CONFIDENCES, VERDICTS

_INTERVAL = "interval"
_FACTOR = "scale_factor"


@dataclass(frozen=True, eq=False)
class _Weighed:
    """A candidate that fits, the code that it leaves each unit, and what its parameters cost."""

    one: Candidate
    left: Doubles
    charge: float

    @property
    def bits(self) -> Array | None:
        """What it says of every bit; None of a pattern."""
        return None if self.one.prediction is None else self.one.prediction.bits

    @property
    def cost(self) -> float:
        return float(np.sum(self.left)) + self.charge


def ranked(
    problem: Problem,
    outputs: Arrays,
    fits: dict[str, Fit],
    found: Sequence[Candidate],
    tried: int,
) -> list[Candidate]:
    """All candidates with their evidence and what follows from it, the best first. `tried`: how
    many (model, parameter) pairs they are chosen from."""
    weighed: list[Candidate] = []
    for name, got in outputs.items():
        mine = [one for one in found if one.output == name]
        weighed += _of_output(problem, got, fits[name], mine, tried)
    fitting = {(one.cause, one.output) for one in weighed if not one.ruled_out}
    breadth = Counter(cause for cause, _ in fitting)
    return sorted(
        map(_bare, weighed), key=lambda one: _rank(one, fits[one.output], breadth[one.cause])
    )


def badness(one: Fit) -> tuple[float, ...]:
    """The worse the smaller."""
    return (float(VERDICTS.index(one.verdict)), -one.over_bound, -one.over_plain)


def _of_output(
    problem: Problem, got: Array, truth: Fit, found: list[Candidate], tried: int
) -> list[Candidate]:
    telling = [one for one in found if one.prediction is not None]
    if not telling:
        return found
    observed = evidence.observe(problem, got, truth)
    telling = _without_blame(telling)
    weighed = [_weighed(observed, one, tried) for one in telling]
    patterns = [one.one for one in weighed if one.bits is None]
    alike, beaten = _survivors(observed, [one for one in weighed if one.bits is not None])
    named = [_named(one, alike) for one in alike] + _of_patterns(patterns)
    sure = {one.model for one in named if one.cause != ORDER and one.confidence != "consistent"}
    kept = [one for one in named if one.cause != ORDER or one.model not in sure]
    rest = [one for one in found if one.prediction is None]
    return kept + [replace(one.one, confidence=None) for one in beaten] + rest


def _without_blame(telling: list[Candidate]) -> list[Candidate]:
    """Of an output that a harmless model has to the bit, whatever is to blame says nothing else: a
    right kernel answers so too. A bias too small to change a rounding may be missing, or not."""
    harmless = next((one for one in telling if one.cause in HARMLESS and one.exact), None)
    if harmless is None:
        return telling
    assert harmless.prediction is not None
    return [
        one if one.cause in HARMLESS else one.against(harmless.prediction.bits) for one in telling
    ]


def _weighed(observed: evidence.Observed, one: Candidate, tried: int) -> _Weighed:
    earned = observed.bits_of(one)
    most = float(np.max(observed.units.earned(observed.lengths), initial=0.0))
    counted = evidence.weighed(one, earned, observed.units.count, tried)
    charge = one.price + one.parameters * most
    return _Weighed(replace(one, evidence=counted), observed.left(one), charge)


def _survivors(
    observed: evidence.Observed, weighed: list[_Weighed]
) -> tuple[list[Candidate], list[_Weighed]]:
    """Those that the best does not rule out, and those that it does."""
    if not weighed:
        return [], []
    best = min(weighed, key=lambda one: one.cost)
    alike = [one for one in weighed if _behind(observed, one, best) < Evidence.APART]
    return [one.one for one in alike], [one for one in weighed if one not in alike]


def _behind(observed: evidence.Observed, one: _Weighed, best: _Weighed) -> float:
    """By how many bits a hypothesis is worse, where the two say different things."""
    mine, other = one.bits, best.bits
    assert mine is not None
    assert other is not None
    differ = observed.units.chosen(np.logical_not(evidence.same(mine, other)))
    where = observed.units.any(differ)
    return float(np.sum((one.left - best.left)[where]))


def _named(one: Candidate, alike: list[Candidate]) -> Candidate:
    """The candidate with its confidence, its class, and the numbers that the class shares."""
    sure = one.sure
    causes = dict.fromkeys((one.cause, *(other.cause for other in alike)))
    others = set(causes) - {one.cause}
    # A factor says by how much; beside it the other cause says why.
    if others - {*HARMLESS, _FACTOR}:
        sure = "consistent"  # the class shares no cause
    mine = [other.details for other in alike if other.cause == one.cause]
    assert one.evidence is not None
    counted = replace(one.evidence, survivors=tuple(causes))
    return replace(one, confidence=sure, details=_shared(one.details, mine), evidence=counted)


def _of_patterns(patterns: list[Candidate]) -> list[Candidate]:
    """Patterns speak of the same wrong elements: where two causes have them, neither is sure."""
    causes = tuple(dict.fromkeys(one.cause for one in patterns))
    named = []
    for one in patterns:
        assert one.evidence is not None
        others = (cause for cause in causes if cause != one.cause)
        weighed = replace(one.evidence, survivors=(one.cause, *others))
        sure = one.sure if len(causes) == 1 else "consistent"
        named.append(replace(one, confidence=sure, evidence=weighed))
    return named


def _shared(details: Any, members: list[Any]) -> dict[str, Any]:
    """The details that all members have; of numbers that differ, the interval."""
    shared: dict[str, Any] = {}
    for key, value in details.items():
        values = [other.get(key) for other in members]
        if all(other == value for other in values):
            shared[key] = value
        elif all(isinstance(other, float) for other in values):
            shared[key] = value
            shared[_INTERVAL] = [min(values), max(values)]
        elif key not in ("statement", "threads"):
            shared[key] = value
    return shared


def _rank(candidate: Candidate, truth: Fit, breadth: int) -> tuple[float, ...]:
    """Wrong outputs first, the worst of them the first; then confidence; what has no number solved
    for before what has; what is more than an order of summation, but where that is not sure and the
    output keeps to the bound: a right kernel is not blamed without evidence; of outputs that the
    cause fits, the most; bits reproduced, and what is left of the error."""
    sure = candidate.confidence
    kept = truth.verdict in ("rounding", "correctly_rounded")
    left = math.inf if candidate.over_plain is None else candidate.over_plain
    if sure == "consistent" and left < math.inf:  # the nearest size
        left = abs(math.log(left)) if left > 0.0 else math.inf
    sized = (left, -candidate.share) if sure == "consistent" else (-candidate.share, left)
    # Of those that remain without proof, what reproduces more than chance would goes first.
    matched = candidate.sure != "consistent"
    return (
        float(candidate.ruled_out),
        float(truth.ordinary),
        *((0.0,) * 3 if truth.ordinary else badness(truth)),
        float(len(CONFIDENCES) if sure is None else CONFIDENCES.index(sure)),
        float(bool(candidate.details.get("fitted"))),
        float((candidate.cause == ORDER) != (kept and sure == "consistent")),
        float(not matched),
        -float(breadth),
        *sized,
        float(-candidate.equal),  # of two outputs reproduced, the larger says more
    )


def _bare(one: Candidate) -> Candidate:
    """Without the arrays that it was weighed by."""
    return replace(one, prediction=None)
