"""What explain() finds: a record of each kernel against the truth, and of each pair of kernels.

An explanation is data. Its words are made above diagnosis, by the module that RENDERER names.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from refkernels.arithmetic.mode import in_default_mode
from refkernels.diagnosis.hypothesis import Candidate, Confidence, Evidence
from refkernels.records.codec import storable
from refkernels.records.words import SCHEMA

RENDERER = "refkernels.rendering"  # turns the record into words; loaded when words are asked for
_ELSEWHERE = ("candidates", "kernels", "differences")  # to_dict has them in places of their own


def _renderer() -> Any:
    return importlib.import_module(RENDERER)


@dataclass(frozen=True)
class Difference:
    """Two kernels' answers to one question, without the truth: how far apart, and why.

    `outputs`: for each output what `metrology.agreement` says. `cause`: the stable identifier of
    what tells the two apart, None where it was not found.
    """

    a: str
    b: str
    outputs: dict[str, dict[str, Any]]
    cause: str | None
    confidence: Confidence | None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        """Whether all bits are the same."""
        return all(one["equal_bits"] == one["elements"] for one in self.outputs.values())

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "equal": self.equal,
            "outputs": self.outputs,
            "cause": self.cause,
            "confidence": self.confidence,
            "details": self.details,
        }


@dataclass(frozen=True)
class Explanation:
    """The verdict on a kernel's outputs, and what is behind it.

    verdict     worst over the outputs (metrology.VERDICTS); independent of the cause
    flags       unusual, nonzero_at_zero, ...
    cause       a stable identifier (see docs/causes.md), None where there is none to name
    confidence  "proven": the bits are reproduced; "matched": another question explains them as
                rounding; "consistent": pattern and size fit; None
    evidence    every number that a report prints
    candidates  all that was tried, the best first; what was ruled out is among them
    kernels     each kernel's own Explanation, where several were asked; then verdict, flags, cause
                and confidence above are those of the worst of them
    differences each pair of kernels
    """

    op: str
    direction: str
    format: str
    verdict: str
    flags: tuple[str, ...]
    cause: str | None
    confidence: Confidence | None
    evidence: dict[str, Any]
    candidates: tuple[Candidate, ...] = ()
    kernels: dict[str, Explanation] = field(default_factory=dict)
    differences: dict[tuple[str, str], Difference] = field(default_factory=dict)

    @property
    @in_default_mode
    def summary(self) -> str:
        """The answer in one sentence."""
        return str(_renderer().summary(self.to_dict()))

    @in_default_mode
    def to_markdown(self, lang: str = "en") -> str:
        """The answer to paste into a thread ("en" or "zh"), with a script for each framework."""
        return str(_renderer().markdown(self.to_dict(), lang))

    def __repr__(self) -> str:
        cause = f"{self.cause}, {self.confidence}" if self.cause else None
        several = f"{len(self.kernels)} kernels" if self.kernels else None
        parts = [part for part in (self.verdict, *self.flags, cause, several) if part]
        return f"<Explanation of {self.op} {self.direction} in {self.format}: {'; '.join(parts)}>"

    @in_default_mode
    def _repr_markdown_(self) -> str:
        """What a notebook shows: the answer without its folded parts."""
        return str(_renderer().brief(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON, of which every view is made."""
        record = {
            "schema": SCHEMA,
            "kind": "explanation",
            "op": self.op,
            "direction": self.direction,
            "format": self.format,
            "verdict": self.verdict,
            "flags": list(self.flags),
            "cause": self.cause,
            "confidence": self.confidence,
            "evidence": {k: v for k, v in self.evidence.items() if k not in _ELSEWHERE},
            "candidates": [_candidate(one) for one in self.candidates],
            "kernels": {name: one.to_dict() for name, one in self.kernels.items()},
            "differences": [one.to_dict() for one in self.differences.values()],
        }
        return dict(storable(record))


def evidence_of(
    outputs: dict[str, Any], candidates: Sequence[Candidate], tried: int
) -> dict[str, Any]:
    """The evidence on one kernel: `judge`'s records of its outputs, how many hypotheses were tried
    (each parameter by itself), and what became of them."""
    return {
        "outputs": outputs,
        "tried": tried,
        "thresholds": {"proven": Evidence.PROVEN, "matched": Evidence.MATCHED},
        "candidates": [_candidate(one) for one in candidates],
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    evidence = one.evidence
    return {
        "cause": one.cause,
        "output": one.output,
        "confidence": one.confidence,
        "equal": one.equal,
        "elements": one.elements,
        "over_bound": one.over_bound,
        "over_plain": one.over_plain,
        "details": dict(one.details),
        "model": one.model,
        "bits": evidence.bits if evidence else None,
        "units": evidence.units if evidence else None,
        "needed": evidence.needed if evidence else None,
        "survivors": list(evidence.survivors) if evidence else [],
    }
