"""What several cases of one kernel say together: only what all of them allow is known.

Two causes may fit one case alike, as truncation to float16 and to TF32 do where no number is small.
A cause is kept with the interval and the formats that all cases allow. One that another case rules
out although it is wrong as well is at most consistent.

A case in which one number is wrong, a norm or a mean of losses, earns little. Where no case is sure
and all allow one cause alone, its bits are added: it was chosen once, from all that were tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from refkernels.diagnosis.edits.search import of_cases
from refkernels.diagnosis.edits.solved import SolvedNumber
from refkernels.diagnosis.explain import explain, explain_kernel, one_kernel
from refkernels.diagnosis.explanation import Explanation
from refkernels.diagnosis.hypothesis import HARMLESS, Candidate, Details, Evidence
from refkernels.diagnosis.ranking import STRONGER
from refkernels.op import Direction, Op
from refkernels.records.codec import number
from refkernels.records.words import OR, SOUND, SURE


def is_sure(explanation: Explanation) -> bool:
    """Whether it proves or matches a fault, which other cases may rule out."""
    return explanation.confidence in SURE and explanation.cause not in HARMLESS


def may_say_more(explanation: Explanation) -> bool:
    """Whether it names a fault of which other cases may say more: what they allow of a sure one, or
    bits for one that lacks nothing else."""
    fitting = [c for c in explanation.candidates if c.evidence and not c.ruled_out]
    lacks_bits = any(c.confidence == c.evidence_confidence for c in fitting)
    return explanation.cause not in (None, *HARMLESS) and (is_sure(explanation) or lacks_bits)


def jointly(op: str | Op, direction: Direction, cases: Sequence[Any]) -> Explanation:
    """What several cases of one kernel say, each its inputs, outputs and params. Where none is
    sure, the edits that explain all of them are looked for: one number has few bits."""
    each = [explain(op, inputs, outputs, params, direction) for inputs, outputs, params in cases]
    first, *others = sorted(each, key=is_sure, reverse=True)
    found = together(first, others)
    wrong = [case for case, its in zip(cases, each, strict=True) if its.verdict not in SOUND]
    if is_sure(found) or len(wrong) < 2:
        return found
    kernels = [one_kernel(op, inputs, y, params, direction) for inputs, y, params in wrong]
    edited = list(of_cases(kernels))
    first, *others = (
        explain_kernel(*kernel, lambda *_, k=k: (its[k] for its in edited if its[k]))
        for k, kernel in enumerate(kernels)
    )
    return max(found, together(first, others), key=is_sure)


def together(first: Explanation, others: Sequence[Explanation]) -> Explanation:
    """The first case's explanation, of which only what the other cases of one kernel allow is sure.
    A case whose output is right, or that has no cause, says nothing."""
    if not is_sure(first):
        return _added(first, [other for other in others if other.verdict not in SOUND])
    for other in others:
        first = _with(first, [_allowed(candidate, other) for candidate in first.candidates])
    return first


def _added(first: Explanation, others: Sequence[Explanation]) -> Explanation:
    """The explanation with the bits of all cases, where one cause alone fits them all."""
    fitting = [c for c in first.candidates if not c.ruled_out and others]
    output = next((c.output for c in fitting if c.cause == first.cause), None)
    agreed = (_of_all(c, others) for c in fitting if c.output == output)
    left = sorted(filter(None, agreed), key=lambda c: -getattr(c.evidence, "bits", 0.0))
    causes = {candidate.cause for candidate in left}
    causes -= {cause for cause in causes if STRONGER.get(cause, set()) & causes}
    best = next((c for c in left if c.cause in causes and c.confidence in SURE), None)
    if best is None or len(causes) > 1 or not (best.exact or best.over_plain is not None):
        return first  # or it explains no more than the places of wrong elements
    return _with(first, [best, *first.candidates])


def _of_all(candidate: Candidate, others: Sequence[Explanation]) -> Candidate | None:
    """The candidate with the evidence of all cases; None where one of them excludes it. Where more
    than a lack of bits keeps a case from being sure, there are none."""
    total, units, details = 0.0, 0, candidate.details
    for its in (candidate, *(_like(candidate, other) for other in others)):
        known = None if its is None else _shared(details, its.details)
        if its is None or known is None or not _of_one_length(details, its.details):
            return None
        solved = "interval" in known and its.details.get("value") != details.get("value", "")
        own = its.evidence or Evidence(-math.inf, 0)
        told = {k: v.split(OR) for k, v in its.details.items() if isinstance(v, str)}
        anew = any(str(known.get(k, v[0])).split(OR)[0] not in v for k, v in told.items())
        again = 0.0 if its is candidate or anew else own.described - its.price * solved
        total += own.bits + again if its.confidence == own.confidence else -math.inf
        units, details = units + own.units, known
    evidence = Evidence(total, units, None, (candidate.cause,))
    return replace(candidate, details=details, evidence=evidence, confidence=evidence.confidence)


def _like(candidate: Candidate, other: Explanation) -> Candidate | None:
    """The best candidate of another case that says the same of the same output."""
    about = candidate.cause, candidate.output
    same = (c for c in other.candidates if (c.cause, c.output) == about and not c.ruled_out)
    return next((c for c in same if _shared(candidate.details, c.details) is not None), None)


def _of_one_length(details: Details, others: Details) -> bool:
    """Whether the whole numbers are the same, but for those of sums of other lengths."""
    whole = [k for k in details.keys() & others.keys() - {"wrong"} if type(details[k]) is int]
    return details.get("n") != others.get("n") or all(details[k] == others[k] for k in whole)


def _with(first: Explanation, candidates: list[Candidate]) -> Explanation:
    """The explanation with other candidates, those that are sure first."""
    candidates.sort(key=lambda candidate: candidate.confidence not in SURE)  # stable
    best = next((candidate for candidate in candidates if candidate.confidence in SURE), None)
    return replace(
        first,
        cause=best.cause if best else first.cause,
        confidence=best.confidence if best else "consistent",
        candidates=tuple(candidates),
    )


def _allowed(candidate: Candidate, other: Explanation) -> Candidate:
    """A sure candidate with the details that some candidate of another case shares: a sure one, or
    where none is, one of the same cause with other numbers. Consistent if it shares none."""
    of_cause = [c for c in other.candidates if c.cause == candidate.cause and not c.ruled_out]
    rivals = [c for c in of_cause if c.confidence in SURE or not is_sure(other)]
    says = is_sure(other) or any("interval" in c.details for c in rivals)
    if candidate.confidence not in SURE or candidate.cause in HARMLESS or not says:
        return candidate
    shared = [known for c in rivals if (known := _shared(candidate.details, c.details)) is not None]
    if not shared:
        return replace(candidate, confidence="consistent")
    return replace(candidate, details=shared[0]) if is_sure(other) else candidate


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
    solved = details.get("solved") == others.get("solved") is not None
    if solved or ({"part", "fitted"} & details.keys() and "interval" in details.keys() & others):
        return _common_interval(shared, others)
    return shared


def _common_interval(details: dict[str, Any], others: Details) -> dict[str, Any] | None:
    ends = [[number(end) or 0.0 for end in given["interval"]] for given in (details, others)]
    low, high = max(low for low, _ in ends), min(high for _, high in ends)
    if low > high:
        return None
    if "solved" not in details:
        return {**details, "interval": [low, high]}
    solved = details["solved"]
    best = min(max(details[solved], low), high)
    known = SolvedNumber(best, low, high, 0.0)
    kept = {key: value for key, value in details.items() if key not in ("several", "fitted")}
    return {**kept, solved: known.told, "interval": [low, high], **known.flags}
