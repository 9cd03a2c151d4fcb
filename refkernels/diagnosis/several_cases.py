"""What several cases of one kernel say together: only what all of them allow is known.

Two causes may fit one case alike, as truncation to float16 and to TF32 do where no number is small.
A cause is kept with the interval and the formats that all cases allow. One that another case rules
out although it is wrong as well is at most consistent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from refkernels.diagnosis import few_digits
from refkernels.diagnosis.explanation import Explanation, evidence_of
from refkernels.diagnosis.hypothesis import HARMLESS, Candidate, Details
from refkernels.diagnosis.variants.params import USUAL
from refkernels.records.codec import number
from refkernels.records.words import OR, SURE


def is_sure(explanation: Explanation) -> bool:
    """Whether it proves or matches a fault, which other cases may rule out."""
    return explanation.confidence in SURE and explanation.cause not in HARMLESS


def together(first: Explanation, others: Sequence[Explanation]) -> Explanation:
    """The first case's explanation, of which only what the other cases of one kernel allow is sure.
    A case whose output is right, or that has no cause, says nothing."""
    if not is_sure(first):
        return first
    for other in others:
        if is_sure(other):
            first = _narrowed(first, other)
    return first


def _narrowed(first: Explanation, other: Explanation) -> Explanation:
    allowed = [candidate for candidate in other.candidates if candidate.confidence in SURE]
    candidates = [_allowed(candidate, allowed) for candidate in first.candidates]
    candidates.sort(key=lambda candidate: candidate.confidence not in SURE)  # stable
    best = next((candidate for candidate in candidates if candidate.confidence in SURE), None)
    named = best.cause if best else first.cause
    effort = (first.evidence[name] for name in ("tried", "seconds"))
    evidence = evidence_of(first.evidence["outputs"], candidates, *effort)
    return replace(
        first,
        cause=named,
        confidence=best.confidence if best else "consistent",
        candidates=tuple(candidates),
        evidence={**first.evidence, **evidence},
    )


def _allowed(candidate: Candidate, allowed: Sequence[Candidate]) -> Candidate:
    """A sure candidate with the details that some candidate of the other case shares; consistent if
    there is none."""
    if candidate.confidence not in SURE or candidate.cause in HARMLESS:
        return candidate
    for rival in allowed:
        details = _shared(candidate.details, rival.details)
        if rival.cause == candidate.cause and details is not None:
            return replace(candidate, details=details)
    return replace(candidate, confidence="consistent")


def _shared(details: Details, others: Details) -> dict[str, Any] | None:
    """The details that both allow; None if they exclude each other. What belongs to a case (how
    many elements are wrong, a factor of its length) is the first's."""
    shared, not_of_a_case = dict(details), "solved" in details or "interval" not in details
    for key in details.keys() & others.keys():
        mine, its = (str(given[key]).split(OR) for given in (details, others))
        if both := [text for text in mine if text in its]:
            shared[key] = OR.join(both) if isinstance(details[key], str) else details[key]
        elif isinstance(details[key], str) and not_of_a_case:
            return None
    if details.get("solved") == others.get("solved") is not None:
        return _common_interval(shared, others)
    return shared


def _common_interval(details: dict[str, Any], others: Details) -> dict[str, Any] | None:
    ends = [[number(end) or 0.0 for end in given["interval"]] for given in (details, others)]
    low, high = max(low for low, _ in ends), min(high for _, high in ends)
    if low > high:
        return None
    solved = details["solved"]
    name, best = details.get("param", solved), min(max(details[solved], low), high)
    asked = details.get("asked", 0.0)
    value, flags, _ = few_digits.told(low, best, high, asked, USUAL.get(name, ()))
    kept = {key: known for key, known in details.items() if key not in ("several", "fitted")}
    return {**kept, solved: value, "interval": [low, high], **flags}
