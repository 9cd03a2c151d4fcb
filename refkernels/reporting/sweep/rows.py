"""The rows of a table of sweeps: one per function, framework and format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from refkernels.reporting.reading import Record
from refkernels.reporting.words import vocabulary
from refkernels.reporting.words.numerals import share, ulp_figure
from refkernels.reporting.words.vocabulary import Verdict, rank_of_dtype
from refkernels.target_names import framework_of, short

FAULTS: dict[str, tuple[str, str]] = json.loads(
    Path(__file__).with_name("faults.json").read_text(encoding="utf-8")
)
"""The name of each fault and its meaning, the worst first."""


@dataclass(frozen=True, eq=False)
class SweepRow:
    """One sweep, as the table shows it."""

    record: Record

    @property
    def op(self) -> str:
        return str(self.record["op"])

    @property
    def dtype(self) -> str:
        return str(self.record["dtype"])

    @property
    def subject(self) -> str:
        """`torch 2.13.0+cpu`, with the settings in the target's name, and the device unless it is a
        CPU."""
        device = str(self.record.get("device") or "cpu")
        target = short(self.record["framework"])
        _, sign, settings = target.partition("@")
        framework = framework_of(target)
        name = target if framework == target else f"{framework}{sign}{settings}"
        name = f"{name} {self.record.get('version') or ''}"
        return name.strip() + (f" on {device}" if device != "cpu" else "")

    @property
    def status(self) -> str:
        return str(self.record.get("status") or "error")

    @property
    def reason(self) -> str:
        """Why the sweep failed, wholly or in part; empty if it did not."""
        return str(self.record.get("reason") or "")

    @property
    def swept(self) -> bool:
        """Whether there are counts at all."""
        return bool(self.counts.get("inputs"))

    @property
    def search(self) -> bool:
        """Whether only some inputs were tried, so that the largest error is a lower bound."""
        return self.record.get("method") == "search"

    @property
    def counts(self) -> dict[str, int]:
        return self.record.get("counts") or {}

    @property
    def ulp(self) -> dict[str, Any]:
        return self.record.get("ulp") or {}

    @property
    def takes(self) -> list[str]:
        """The names of the inputs."""
        return list(self.record.get("takes") or ["input"])

    @property
    def verdict(self) -> Verdict:
        return vocabulary.verdict(str(self.record.get("verdict") or ""))

    @property
    def largest(self) -> str:
        """The largest error in ulp, with "≥" before it if it comes from a search."""
        return ("≥ " if self.search and self.ulp else "") + precise(self.ulp.get("max"), self.dtype)

    @property
    def wrong(self) -> str:
        """The share that is not correctly rounded."""
        return share(self.counts["not_correctly_rounded"], self.counts["inputs"])

    @property
    def faults(self) -> list[tuple[str, str, int, dict[str, Any]]]:
        """(name, short words, count, first input) of every fault that occurred, worst first."""
        firsts = self.record.get("firsts") or {}
        violated = self.record.get("invariants") or []
        counted = []
        for name, (words, _) in FAULTS.items():
            if number := self.counts.get(name, 0):
                first = firsts.get(name, {})
                if name == "invariants_violated" and violated:
                    first = violated[0]
                counted.append((name, words, number, first))
        return counted

    @cached_property
    def distances(self) -> list[tuple[str, int]]:
        """(distance from the correctly rounded answer in floats, number of answers at it)."""
        return list((self.record.get("distances") or {}).items())

    @property
    def rate(self) -> float | None:
        """Inputs per second of one worker, framework and oracle together."""
        seconds = (self.record.get("seconds") or {}).get("total")
        return self.counts["inputs"] / seconds if seconds and self.swept else None


def rows(records: list[Record]) -> list[SweepRow]:
    """The sweeps in the order of a table: by function and format, the smallest error first."""
    sweeps = [SweepRow(record) for record in records if record.get("kind") == "sweep"]
    return sorted(
        sweeps,
        key=lambda row: (
            row.op, rank_of_dtype(row.dtype), not row.swept, row.ulp.get("max") or 0.0, row.subject,
        ),
    )  # fmt: skip


def precise(value: float | None, dtype: str = "") -> str:
    """An error in ulp with enough digits to distinguish 0.5001 from 0.5."""
    if value is None:
        return "–"
    return f"{value:.4f}" if value < 10 else ulp_figure(value, dtype)


def headline(sweeps: list[SweepRow]) -> str:
    """What was tried, in one or two sentences."""
    swept = [row for row in sweeps if row.swept]
    full = sum(row.counts["inputs"] for row in swept if not row.search)
    searched = sum(row.counts["inputs"] for row in swept if row.search)
    parts = []
    if full:
        parts.append(f"{full:,} inputs tried and judged, all inputs of the given ranges")
    if searched:
        parts.append(f"{searched:,} inputs tried in searches, whose maxima are lower bounds")
    if not parts:
        return "Nothing could be swept."
    exact = [row for row in swept if row.verdict.name == "correctly_rounded"]
    where = "on all tried inputs" if searched else "throughout"
    tail = f" {len(exact)} of {len(swept)} are correctly rounded {where}." if swept else ""
    return "; ".join(parts) + "." + tail
