"""What is found about a kernel while it is asked: the challenges that it answered, and how."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from refkernels.frameworks.cells import CellReply
from refkernels.judging.judgement import Reason
from refkernels.judging.standard import AnswerFault, Challenge

_KILL = int(getattr(signal, "SIGKILL", 9))  # what a machine without memory sends
_MEASURED = 24  # answers, in search of errors that another form avoids


@dataclass
class Findings:
    """The findings so far. `asked`: by family, the challenges that were not declined; `by_family`,
    `by_output`: of these, those that reject every decoy of some output, and of this; `answered`:
    rightly or wrongly; `refused`: wrongly; `failed`: without an answer; `stopped`: perhaps by the
    machine; `declined`: which the kernel may decline; `owed`: which it may not; `outputs`: names
    seen; `definition`: gives answers whose special values are right too; `avoidable`: the first
    right answer, of a few, whose errors another form avoids; `calls`: of one process."""

    asked: Counter[str] = field(default_factory=Counter)
    by_family: Counter[str] = field(default_factory=Counter)
    by_output: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[Challenge, CellReply, AnswerFault]] = field(default_factory=list)
    failed: list[tuple[Challenge, CellReply]] = field(default_factory=list)
    stopped: list[tuple[Challenge, CellReply]] = field(default_factory=list)
    answered: list[Challenge] = field(default_factory=list)
    declined: list[Challenge] = field(default_factory=list)
    owed: list[tuple[Challenge, CellReply]] = field(default_factory=list)
    outputs: frozenset[str] = frozenset()
    definition: Callable[[Challenge], Mapping[str, Any]] | None = None
    unfair: list[Reason] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    avoidable: dict[str, Any] | None = None
    calls: int = 0

    @property
    def score(self) -> float:
        """The share of the challenges that were answered rightly; 0 for an unfair kernel."""
        asked = max(sum(self.asked.values()), 1)
        wrong = len(self.refused) + len(self.failed) + len(self.stopped)
        return 0.0 if self.unfair else round(1.0 - min(wrong / asked, 1.0), 4)

    @property
    def wrong(self) -> bool:
        return bool(self.refused or self.failed or self.stopped or self.unfair or self.owed)

    def without_answer(self, challenge: Challenge, reply: CellReply) -> None:
        """Count a reply without arrays: a challenge that was declined, or one that failed or was
        stopped."""
        if reply.status == "unsupported" and challenge.owed:
            self.owed.append((challenge, reply))
        elif reply.status in ("error", "unsupported") and not challenge.owed:
            self.declined.append(challenge)
        else:
            self.asked[challenge.family] += 1
            by_machine = reply.status in ("timeout", "oom") or reply.signal == _KILL
            (self.stopped if by_machine else self.failed).append((challenge, reply))

    def fault(
        self, challenge: Challenge, reply: CellReply, decisive: Sequence[str]
    ) -> AnswerFault | None:
        """Count an answer; return its fault. `decisive`: the outputs for which its challenge
        rejects every decoy."""
        reply = replace(reply, outputs=challenge.op.widened(reply.outputs))
        fault = challenge.fault(reply.outputs, self.outputs)
        if fault is not None and not challenge.fair:
            return None
        self.asked[challenge.family] += 1
        self.by_family[challenge.family] += bool(decisive)
        self.by_output.update({name for name in decisive if name in reply.outputs})
        self.answered.append(challenge)
        if fault is not None and fault.kind == "special" and self.definition is not None:
            fault = challenge.fault(reply.outputs, self.outputs, self.definition(challenge))
            self.flags += [] if fault else ["special_as_defined"]
        self.flags += [] if fault else challenge.doubts(reply.outputs)
        self.outputs = self.outputs.union(reply.outputs)
        if fault is None and self.avoidable is None and len(self.answered) <= _MEASURED:
            self.avoidable = challenge.avoidable(reply.outputs)
        if fault:
            self.refused.append((challenge, reply, fault))
        return fault

    def declined_parts(self) -> tuple[str, ...]:
        """What of the declined challenges no answered one had: inputs, and params with their
        values; where that is nothing, the first challenge of a family."""
        answered = {part for challenge in self.answered for part in _parts(challenge)}
        parts: dict[str, None] = {}
        names: dict[str, str] = {}
        for challenge in self.declined:
            own = [part for part in _parts(challenge) if part not in answered]
            parts |= dict.fromkeys(own)
            if not own:
                names.setdefault(challenge.family, challenge.name)
        return (*parts, *names.values())


def _parts(challenge: Challenge) -> list[str]:
    """The names of a challenge's inputs, and its params."""
    return [*challenge.inputs, *(f"{name}={value}" for name, value in challenge.params.items())]
