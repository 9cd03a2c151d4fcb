"""What is found about a kernel while it is asked: the challenges that it answered, and how; the
verdict to which this leads, with its reasons, and the cause that `explain` gives."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from refkernels.frameworks.cells import CellReply
from refkernels.judging import precision
from refkernels.judging.examination import KernelExamination
from refkernels.judging.judgement import LIMITED, LOWER, NOT_ENOUGH, RIGHT, UNFAIR, WRONG, Reason
from refkernels.judging.standard import RANGE, Challenge
from refkernels.judging.wrong_answers import arrays_of, decoy_of, unwritten

FAMILIES_NEEDED = 4  # that reject every decoy of an output
FAMILIES_LOWER = 3  # in which a kernel of lower precision is refused: one may have another cause
_ACTS = ("writes_inputs", "no_plain_array", "replaces")  # unfair, whatever the answers are
_CAUSED = ("wrong_special", "wrong_bits", "wrong_bound")  # whose cause is looked for
_VALUES = (*_CAUSED, "wrong_invariant")  # faults of numbers, not of arrays
_SMALLEST, _LARGEST = 16, 1 << 14  # elements of an answer whose cause is looked for
_OTHERS = 2  # other answers that have to agree
_KILL = int(getattr(signal, "SIGKILL", 9))  # what a machine without memory sends
_MEASURED = 24  # answers, in search of errors that another form avoids


class AskedChallenge(NamedTuple):
    """What came of a challenge. `kind`: "right", "wrong"; without an answer "failed", "stopped",
    perhaps by the machine, "declined", which it may be, or "owed", which it may not. `decisive`:
    the outputs for which the challenge rejects every decoy."""

    kind: str
    challenge: Challenge
    reply: CellReply
    fault: Reason | None = None
    decisive: tuple[str, ...] = ()


@dataclass
class Findings:
    """The findings so far. `outputs`: names seen; `avoidable`: the first right answer, of a few,
    whose errors another form avoids; `answered_calls`: of one process."""

    examination: KernelExamination
    found: list[AskedChallenge] = field(default_factory=list)
    outputs: frozenset[str] = frozenset()
    unfair: list[Reason] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    avoidable: dict[str, Any] | None = None
    answered_calls: int = 0

    def of(self, *kinds: str) -> list[AskedChallenge]:
        """The findings of some kinds, one kind after the other."""
        return [one for kind in kinds for one in self.found if one.kind == kind]

    @property
    def answered(self) -> list[Challenge]:
        """The challenges that were answered, rightly or wrongly."""
        return [one.challenge for one in self.of("right", "wrong")]

    @property
    def families(self) -> dict[str, tuple[int, int]]:
        """By family, the challenges that were not declined; and of the answered ones, those that
        reject every decoy of some output."""
        kept = self.of("right", "wrong", "failed", "stopped")
        asked = Counter(one.challenge.family for one in kept)
        decisive = Counter(one.challenge.family for one in self.found if one.decisive)
        return {family: (number, decisive[family]) for family, number in asked.items()}

    @property
    def score(self) -> float:
        """The share of the challenges that were answered rightly; 0 for an unfair kernel."""
        asked, wrong = len(self.of("right")), len(self.of("wrong", "failed", "stopped"))
        return 0.0 if self.unfair else round(1.0 - wrong / max(asked + wrong, 1), 4)

    @property
    def wrong(self) -> bool:
        return bool(self.unfair or self.of("wrong", "failed", "stopped", "owed"))

    def add(self, challenge: Challenge, reply: CellReply) -> Reason | None:
        """Count a reply; return its fault. Where there is no right answer, or plain algorithms are
        wrong, none counts."""
        acts = {"writes_inputs": reply.written, "overwrites_answers": reply.overwrites}
        acts["no_plain_array"] = "no plain array" in reply.reason
        self.unfair += [Reason(kind, challenge.name) for kind, done in acts.items() if done]
        if not challenge.has_answer:
            return None
        if reply.status != "ok":
            self.found.append(AskedChallenge(_unanswered(challenge, reply), challenge, reply))
            return None
        self.flags += ["returns_input"] * reply.aliases
        reply = replace(reply, outputs=challenge.op.widened(reply.outputs))
        fault = challenge.fault(reply.outputs, self.outputs)
        if fault is not None and not challenge.fair:
            return None
        decisive = self.examination.decisive_outputs(challenge)
        told = tuple(name for name in decisive if name in reply.outputs)
        kind = "wrong" if fault else "right"
        self.found.append(AskedChallenge(kind, challenge, reply, fault, told))
        self.outputs = self.outputs.union(reply.outputs)
        if fault is None:
            measured = self.avoidable is None and len(self.answered) <= _MEASURED
            doubts, avoidable = challenge.remarks(reply.outputs, measured)
            self.flags, self.avoidable = self.flags + doubts, self.avoidable or avoidable
        return fault

    def declined_parts(self) -> tuple[str, ...]:
        """What of the declined challenges no answered one had: inputs, and params with their
        values; where that is nothing, the first challenge of a family."""
        answered = {part for challenge in self.answered for part in _parts(challenge)}
        parts, names = dict[str, None](), dict[str, str]()
        for challenge in (one.challenge for one in self.of("declined")):
            own = [part for part in _parts(challenge) if part not in answered]
            parts |= dict.fromkeys(own)
            if not own:
                names.setdefault(challenge.family, challenge.name)
        return (*parts, *names.values())

    def verdict(self) -> tuple[str, list[Reason]]:
        """The verdict, and its reasons."""
        faults = _reasons(self.of("failed", "stopped", "wrong"))
        answered, failed = self.of("right", "wrong"), self.of("failed")
        found = [one for one in answered if one.fault and one.fault.kind not in RANGE]
        refused = [(one.challenge, one.reply.outputs) for one in found]
        acts = [reason for reason in self.unfair if reason.kind in _ACTS]
        if acts:
            return UNFAIR, [acts[0], *faults]
        mostly = 2 * len(refused) > len(answered) + len(failed)
        if mostly and (decoy := decoy_of(refused)):
            return UNFAIR, [Reason(decoy, refused[0][0].name), *faults]
        values = all(one.fault.kind in _VALUES for one in found if one.fault)
        families = {one.challenge.family for one in found}
        model = None
        if values and not (failed or self.unfair):
            model = precision.explaining_model(refused)
        if model is not None and (len(families) >= FAMILIES_LOWER or model.way == "flushed"):
            details = {"format": model.format.name, "way": model.way, "refused": len(refused)}
            return LOWER, [Reason("lower_precision", refused[0][0].name, details)]
        if self.unfair:
            return UNFAIR, [*self.unfair[:1], *faults]
        if refused or failed:
            return WRONG, faults
        if self.of("wrong"):
            return LIMITED, faults
        if unanswered := self.of("stopped", "owed"):
            return NOT_ENOUGH, _reasons(unanswered)
        number = sum(1 for _, decisive in self.families.values() if decisive)
        telling = sum(one.challenge.first_output in one.decisive for one in answered)
        if min(telling, number) < FAMILIES_NEEDED:
            return NOT_ENOUGH, [Reason("too_few_families", "", {"families": number})]
        return RIGHT, []


def _unanswered(challenge: Challenge, reply: CellReply) -> str:
    """What a reply without arrays is."""
    if reply.status == "unsupported" and challenge.owed:
        return "owed"
    if reply.status in ("error", "unsupported") and not challenge.owed:
        return "declined"
    by_machine = reply.status in ("timeout", "oom") or reply.signal == _KILL
    return "stopped" if by_machine else "failed"


def _parts(challenge: Challenge) -> list[str]:
    """The names of a challenge's inputs, and its params."""
    return [*challenge.inputs, *(f"{name}={value}" for name, value in challenge.params.items())]


def _reasons(found: Iterable[AskedChallenge]) -> list[Reason]:
    """One reason for each family, kind and status."""
    reasons: dict[tuple[Any, ...], Reason] = {}
    for finding, challenge, reply, fault, _ in found:
        kind = "declines" if finding == "owed" else "no_answer"
        without = Reason(kind, challenge.name, {"status": reply.status, "reason": reply.reason})
        reason = fault or without
        if count := sum(map(unwritten, arrays_of(reply.outputs))):
            told = {"output": reason.details.get("output"), "wrong": count}
            reason = Reason("unwritten", challenge.name, told)
        key = challenge.family, reason.kind, reason.details.get("status")
        reasons.setdefault(key, reason)
    return list(reasons.values())


def cause_of(findings: Findings) -> Mapping[str, Any] | None:
    """What `explain` finds about the smallest wrong answer of a suitable size, to usual numbers if
    there is one, as far as the next ones allow it."""
    from refkernels.diagnosis import several_cases

    found = findings.of("wrong")
    eligible = [
        (size < _SMALLEST, one.challenge.family not in ("calls", "typical"), size, i)
        for i, one in enumerate(found)
        if one.fault and one.fault.kind in _CAUSED and one.challenge.family != "special"
        if (size := sum(a.size for a in arrays_of(one.reply.outputs))) <= _LARGEST
    ]
    if not eligible:
        return None
    chosen = [found[i] for *_, i in sorted(eligible)[: 1 + _OTHERS]]
    cases = [(one.challenge.inputs, one.reply.outputs, one.challenge.params) for one in chosen]
    asked = chosen[0].challenge
    try:
        return several_cases.jointly(asked.op, asked.direction, cases).to_dict()
    except (ValueError, TypeError):
        return None
