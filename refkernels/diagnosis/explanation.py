"""The result of explain(): a record of each kernel against the truth, and of each pair of kernels.

An explanation is data. The module that RENDERER names, above diagnosis, puts it into words.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from refkernels.arithmetic.mode import with_default_fenv
from refkernels.diagnosis.hypothesis import Candidate, Confidence, Evidence
from refkernels.records.codec import storable
from refkernels.records.words import SCHEMA

RENDERER = "refkernels.rendering"  # turns the record into words; loaded on first use


def _renderer() -> Any:
    return importlib.import_module(RENDERER)


@dataclass(frozen=True)
class Difference:
    """Two kernels' answers to one question: how far apart they are, and why.

    `outputs`: `metrology.agreement` of each output. `cause`: the stable identifier of the cause of
    the difference, None where none was found.
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
        return all(counts["equal_bits"] == counts["elements"] for counts in self.outputs.values())

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON."""
        return {**vars(self), "equal": self.equal}


@dataclass(frozen=True)
class Explanation:
    """The verdict on a kernel's outputs, and its cause.

    verdict     worst over the outputs (records.words.VERDICTS); independent of the cause
    flags       unusual, nonzero_at_zero, ...
    cause       a stable identifier (see docs/causes.md), None if there is none to name
    confidence  "proven" (40 bits of evidence), "matched" (20 bits), or "consistent" (it fits, but
                little data or only pattern and size support it); None without a cause
    evidence    every number that a report prints
    candidates  all that was tried, best first, including what was ruled out
    kernels     each kernel's own Explanation, where there are several; the above is of the worst
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
    @with_default_fenv
    def summary(self) -> str:
        """The answer in one sentence."""
        return str(_renderer().summary(self.to_dict()))

    @with_default_fenv
    def to_markdown(self, lang: str = "en") -> str:
        """The answer to paste into a thread ("en" or "zh"), with a script for each framework."""
        return str(_renderer().markdown(self.to_dict(), lang))

    def __repr__(self) -> str:
        cause = f"{self.cause}, {self.confidence}" if self.cause else None
        several = f"{len(self.kernels)} kernels" if self.kernels else None
        parts = [part for part in (self.verdict, *self.flags, cause, several) if part]
        return f"<Explanation of {self.op} {self.direction} in {self.format}: {'; '.join(parts)}>"

    @with_default_fenv
    def _repr_markdown_(self) -> str:
        """The answer without its folded parts, for a notebook."""
        return str(_renderer().brief(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON, from which every view is made."""
        record = {
            "schema": SCHEMA,
            "kind": "explanation",
            **vars(self),
            "flags": list(self.flags),
            "candidates": [_candidate(candidate) for candidate in self.candidates],
            "kernels": {name: kernel.to_dict() for name, kernel in self.kernels.items()},
            "differences": [difference.to_dict() for difference in self.differences.values()],
        }
        return dict(storable(record))


def evidence_of(outputs: dict[str, Any], tried: int, seconds: float) -> dict[str, Any]:
    """The evidence on one kernel: `judge`'s records of its outputs, how many hypotheses were tried
    (each parameter separately), and in how many seconds."""
    return {
        "outputs": outputs,
        "tried": tried,
        "seconds": seconds,
        "thresholds": {"proven": Evidence.PROVEN, "matched": Evidence.MATCHED},
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    own = "cause", "output", "confidence", "equal", "elements", "over_bound", "over_plain", "model"
    return {
        **{name: getattr(candidate, name) for name in own},
        "details": dict(candidate.details),
        **{name: getattr(candidate.evidence, name, None) for name in ("bits", "units", "needed")},
        "survivors": list(candidate.evidence.survivors) if candidate.evidence else [],
    }
