"""The verdict that findings lead to, with its reasons, and the cause that `explain` gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from refkernels.frameworks.cells import CellReply
from refkernels.judging import precision
from refkernels.judging.decoys import arrays_of, decoy_of, unwritten
from refkernels.judging.findings import Findings
from refkernels.judging.judgement import LIMITED, LOWER, NOT_ENOUGH, RIGHT, UNFAIR, WRONG, Reason
from refkernels.judging.standard import RANGE, Challenge
from refkernels.op import Direction, Op

FAMILIES_NEEDED = 4  # that reject every decoy of an output
FAMILIES_LOWER = 3  # in which a kernel of lower precision is refused: one may have another cause
_ACTS = ("writes_inputs", "no_plain_array", "replaces")  # unfair, whatever the answers are
_VALUES = ("special", "bits", "bound", "invariant")  # faults of numbers, not of arrays
_SMALLEST, _LARGEST = 16, 1 << 14  # elements of an answer whose cause is looked for
_OTHERS = 2  # other answers that have to agree


def verdict_of(
    findings: Findings, op: Op, direction: Direction, outside: bool
) -> tuple[str, list[Reason]]:
    """The verdict, and its reasons."""
    if outside:
        first = next((challenge.name for challenge, _ in findings.failed), "")
        return WRONG, [Reason("outside_memory", first)]
    found = [refusal for refusal in findings.refused if refusal[2].kind not in RANGE]
    refused = [(challenge, reply.outputs) for challenge, reply, _ in found]
    acts = [reason for reason in findings.unfair if reason.kind in _ACTS]
    if acts:
        return UNFAIR, [acts[0], *_faults(findings)]
    mostly = 2 * len(refused) > len(findings.answered) + len(findings.failed)
    if mostly and (decoy := decoy_of(refused)):
        return UNFAIR, [Reason(decoy, refused[0][0].name), *_faults(findings)]
    values = all(fault.kind in _VALUES for _, _, fault in found)
    families = {challenge.family for challenge, _, _ in found}
    model = None
    if values and not (findings.failed or findings.unfair):
        model = precision.explaining_model(refused)
    if model is not None and (len(families) >= FAMILIES_LOWER or model.way == "flushed"):
        details = {"format": model.format.name, "way": model.way, "refused": len(refused)}
        return LOWER, [Reason("lower_precision", refused[0][0].name, details)]
    if findings.unfair:
        return UNFAIR, [*findings.unfair[:1], *_faults(findings)]
    if refused or findings.failed:
        return WRONG, _faults(findings)
    if findings.refused:
        return LIMITED, _faults(findings)
    if findings.stopped or findings.owed:
        declined = _one_each(("declines", c, {"reason": r.reason}) for c, r in findings.owed)
        return NOT_ENOUGH, [*_without_answer(findings.stopped), *declined]
    number = sum(1 for decisive in findings.by_family.values() if decisive)
    if findings.by_output[op.names(direction)[0]] < FAMILIES_NEEDED or number < FAMILIES_NEEDED:
        return NOT_ENOUGH, [Reason("too_few_families", "", {"families": number})]
    return RIGHT, []


def _without_answer(replies: Sequence[tuple[Challenge, CellReply]]) -> list[Reason]:
    return _one_each(("no_answer", c, {"status": r.status, "reason": r.reason}) for c, r in replies)


def _faults(findings: Findings) -> list[Reason]:
    """Failures first."""
    found: list[tuple[str, Challenge, dict[str, Any]]] = []
    for challenge, reply, fault in findings.refused:
        figures = {**asdict(fault), "index": list(fault.index)}
        kind = f"wrong_{figures.pop('kind')}"
        if count := sum(map(unwritten, arrays_of(reply.outputs))):
            kind, figures = "unwritten", {"output": fault.output, "wrong": count}
        found.append((kind, challenge, figures))
    return [*_without_answer([*findings.failed, *findings.stopped]), *_one_each(found)]


def _one_each(found: Iterable[tuple[str, Challenge, dict[str, Any]]]) -> list[Reason]:
    """One reason for each family, kind and status."""
    reasons: dict[tuple[Any, ...], Reason] = {}
    for kind, challenge, details in found:
        key = challenge.family, kind, details.get("status")
        reasons.setdefault(key, Reason(kind, challenge.name, details))
    return list(reasons.values())


def cause_of(findings: Findings) -> Mapping[str, Any] | None:
    """What `explain` finds about the smallest wrong answer of a suitable size, to usual numbers if
    there is one, as far as the next ones allow it."""
    from refkernels.diagnosis import several_cases
    from refkernels.diagnosis.explain import explain

    sizes = [sum(a.size for a in arrays_of(reply.outputs)) for _, reply, _ in findings.refused]
    eligible = [
        (challenge.family not in ("calls", "typical"), size, i)
        for i, (size, (challenge, _, fault)) in enumerate(zip(sizes, findings.refused, strict=True))
        if fault.kind in ("bound", "bits", "special") and challenge.family != "special"
        if _SMALLEST <= size <= _LARGEST
    ]
    if not eligible:
        return None
    first, *rest = (findings.refused[i] for _, _, i in sorted(eligible))

    def explanation_of(challenge: Challenge, reply: CellReply, fault: Any) -> Any:
        question = challenge.op, challenge.inputs, reply.outputs, challenge.params
        return explain(*question, challenge.direction)

    try:
        explanation = explanation_of(*first)
        if several_cases.has_cause(explanation):
            others = [explanation_of(*answer) for answer in rest[:_OTHERS]]
            explanation = several_cases.together(explanation, others)
        return explanation.to_dict()
    except (ValueError, TypeError):
        return None
