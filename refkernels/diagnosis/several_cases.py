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
from refkernels.diagnosis.multiples import FACTOR, many
from refkernels.diagnosis.ranking import STRONGER
from refkernels.op import Direction, Op
from refkernels.records.codec import number
from refkernels.records.words import OR, SOUND, SURE


def is_sure(explanation: Explanation) -> bool:
    """Whether it proves or matches a fault, which other cases may rule out."""
    return explanation.confidence in SURE and explanation.cause not in HARMLESS


def jointly(op: str | Op, direction: Direction, cases: Sequence[tuple[Any, ...]]) -> Explanation:
    """What several cases of one kernel say, each its inputs, outputs and params: of the surest,
    what the others allow; they are not asked where the first has many numbers, and names nothing.
    Where none is sure, the edits that explain all of them are looked for: one number has few bits.
    Raises ValueError if there is no case, and what `explain` raises.
    """
    if not cases:
        raise ValueError("cases is empty: give at least one kernel's inputs, outputs and params.")
    kernels = [one_kernel(op, inputs, y, params, direction) for inputs, y, params in cases]
    explained = (explain(op, inputs, y, params, direction) for inputs, y, params in cases)
    each = [next(explained)]
    if each[0].cause not in (None, *HARMLESS) or all(y.size == 1 for y in kernels[0][1].values()):
        each += explained
    found = together(each[0], each[1:])
    wrong = [k for k, its in enumerate(each) if its.verdict not in SOUND]
    if is_sure(found) or len(wrong) < 2:
        return found
    edited = list(of_cases([kernels[k] for k in wrong]))
    again = (
        explain_kernel(*kernels[k], lambda *_, j=j: (its[j] for its in edited if its[j]))
        for j, k in enumerate(wrong)
    )
    each = [replace(its, evidence=each[k].evidence) for k, its in zip(wrong, again, strict=True)]
    joint = _added(each[0], each[1:])
    return found if joint is each[0] else joint  # sure of one case alone, with fewer rivals


def together(first: Explanation, others: Sequence[Explanation]) -> Explanation:
    """The explanation of the first case that is sure, or else wrong, of which only what the other
    cases of one kernel allow is sure. One that is right, or has no cause, says nothing."""
    first, *others = sorted([first, *others], key=lambda e: (not is_sure(e), e.verdict in SOUND))
    if not is_sure(first):
        return _added(first, [other for other in others if other.verdict not in SOUND])
    for other in others:
        first = _with(first, [_allowed(candidate, other) for candidate in first.candidates])
    return first


def _added(first: Explanation, others: Sequence[Explanation]) -> Explanation:
    """The explanation with the bits of all cases, where one cause alone fits them all."""
    fitting = [c for c in first.candidates if not c.ruled_out and others]
    for output in dict.fromkeys(c.output for c in fitting):
        agreed = (_of_all(c, others) for c in fitting if c.output == output)
        left = sorted(filter(None, agreed), key=lambda c: -getattr(c.evidence, "bits", 0.0))
        causes = {candidate.cause for candidate in left}
        causes -= {cause for cause in causes if STRONGER.get(cause, set()) & causes}
        if FACTOR in causes and (reasons := causes - {FACTOR}):  # why, unless there are many
            causes = {FACTOR} if len(reasons) > 1 or any(map(many, left)) else reasons
        best = next((c for c in left if c.cause in causes and c.confidence in SURE), None)
        if best and len(causes) == 1 and (best.exact or best.over_plain is not None):
            return _with(first, [best, *first.candidates])
    return first  # or it explains no more than the places of wrong elements


def _of_all(candidate: Candidate, others: Sequence[Explanation]) -> Candidate | None:
    """The candidate with the evidence of all cases; None where one of them excludes it. Where more
    than a lack of bits keeps a case from being sure, there are none."""
    total, units, details = 0.0, 0, candidate.details
    for its in (candidate, *(_like(candidate, other) for other in others)):
        known = None if its is None else _shared(details, its.details)
        if its is None or known is None:
            return None
        whole = {k for k, v in details.items() if type(v) is int and k in its.details} - {"wrong"}
        of_one_length = details.get("n") == its.details.get("n")  # others have ranges of their own
        if of_one_length and any(details[k] != its.details[k] for k in whole):
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
    unnamed = not details.get("named", True) or details.get("named") != others.get("named")
    own = unnamed or {"part", "fitted"} & details.keys()  # a factor's name is of a case's length
    if solved or (own and "interval" in details.keys() & others):
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
