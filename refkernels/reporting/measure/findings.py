"""Findings: what exceeds rounding, and what is unusual; one row per symptom, worst first.

The same op, pass, format, output, subject and verdict is one symptom, however many cases show it.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from refkernels.reporting.measure.scores import falling, largest, worst_of
from refkernels.reporting.measure.study import Measurement, Study, absolute_error, as_number
from refkernels.reporting.words.escaping import clipped
from refkernels.reporting.words.numerals import count, figure, joined, lost, ratio, ulps
from refkernels.reporting.words.vocabulary import UNUSUAL, WIDE, Verdict, rank_of_status
from refkernels.reporting.words.vocabulary import verdict as verdict_of
from refkernels.seat_names import SeatNameError, parse

_ROUNDING = verdict_of("rounding").rank
_LINE = 600  # characters of a command: a longer one is left out
_FOLDER = 120


@dataclass(frozen=True, eq=False)
class Finding:
    """One symptom, with the case where it is worst."""

    verdict: Verdict  # UNUSUAL for what is inside the bound but stands out
    op: str
    direction: str
    dtype: str
    subject: str
    output: str
    cases: int
    cases_measured: int
    ulp: float | None
    bound: float | None
    plain: float | None
    special: int
    invariants: tuple[str, ...]
    flags: tuple[str, ...]
    worst: Measurement

    @property
    def inputs(self) -> list[tuple[str, str, str, str]]:
        """(name, index, decimal, hex) of the inputs of the worst element."""
        found = []
        for name, value in (self.worst.worst.get("inputs") or {}).items():
            if isinstance(value, dict):
                index = _index(value.get("index"))
                decimal, bits = _text(value.get("decimal")), _text(value.get("hex"))
                found.append((str(name), index, decimal, bits))
        return found

    @property
    def index(self) -> str:
        """The worst element's place in the output."""
        return _index(self.worst.worst.get("index"))

    @property
    def got(self) -> tuple[str, str]:
        """(decimal, hex) of what the framework returned there."""
        return _pair(self.worst.worst.get("got"))

    @property
    def exact(self) -> tuple[str, str]:
        """(decimal, hex) of the exact answer there."""
        return _pair(self.worst.worst.get("exact"))

    @property
    def condition(self) -> float | None:
        """The condition number at the worst element."""
        return as_number(self.worst.worst.get("condition"))

    @property
    def absolute(self) -> float | None:
        """|got - exact| at the worst element, where no digit of it is right."""
        return absolute_error(self.worst)

    @property
    def command(self) -> str:
        """The command that measures the worst case again, "" where no line can hold it."""
        record, case, device = self.worst.record, self.worst.case, self.worst.device
        spec = _specification(record)
        settings = [f"{key}={value}" for key, value in _others(record)]
        about = [
            spec,
            case,
            self.dtype,
            *([device] if device not in ("", "cpu") else []),
            *settings,
        ]
        # A folder of its own, and --resume: it meets neither the run of this page nor the page's
        # other commands, and given twice it only shows its table again.
        folder = re.sub(r"[^A-Za-z0-9_.+]+", "-", " ".join(about)).strip("-.")
        words = ["refkernels", "measure", "--framework", spec, "--op", self.op]
        words += ["--dtype", self.dtype, "--device", device or "cpu"]
        for setting in settings:
            words += ["--set", setting]
        words += ["--case", case, "--out", f"again/{folder[:_FOLDER]}", "--resume"]
        line = shlex.join(words)
        return line if line.isprintable() and len(line) <= _LINE else ""


def _specification(record: dict[str, Any]) -> str:
    """The seat as `--framework` takes it, in the version that answered; as it was named where PEP
    440 knows no such version."""
    framework = str(record["framework"])
    try:
        name = parse(framework)
        return str(replace(name, version=str(record.get("version") or name.version)))
    except SeatNameError:
        return framework


def _others(record: dict[str, Any]) -> list[tuple[str, str]]:
    """The settings that are not in the seat's own name."""
    try:
        own = dict(parse(str(record["framework"])).settings)
    except SeatNameError:
        own = {}
    settings = record.get("settings") or {}
    return sorted((key, str(settings[key])) for key in settings if key not in own)


def findings(study: Study) -> list[Finding]:
    """All findings: wide formats first, then by verdict, error / bound, error / plain, max ulp."""
    cases: dict[tuple[str, ...], set[str]] = defaultdict(set)
    groups: dict[tuple[str, ...], list[Measurement]] = defaultdict(list)
    for one in study.measurements:
        place = (one.op, one.direction, one.dtype, one.subject, one.output)
        cases[place].add(one.case)
        if one.verdict.rank < _ROUNDING:
            groups[(*place, one.verdict.name)].append(one)
        elif one.unusual:
            groups[(*place, UNUSUAL.name)].append(one)
    found = [_finding(key, some, len(cases[key[:5]])) for key, some in groups.items()]
    return sorted(
        found,
        key=lambda one: (
            one.dtype not in WIDE,
            one.verdict.rank,
            -falling(one.bound),
            -falling(one.plain),
            -falling(one.ulp),
            (one.op, one.direction, one.dtype, one.subject, one.output, one.verdict.name),
        ),
    )


@dataclass(frozen=True, eq=False)
class Unrun:
    """What did not run for one reason: one subject, one status, one sentence."""

    status: str
    subject: str
    reason: str
    places: tuple[str, ...]  # "sin backward float16"
    records: int


def unrun(study: Study) -> list[Unrun]:
    """What did not run, faults first and `unsupported` last, folded by reason."""
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for one in study.failures:
        reason = clipped(one.reason, 600) or "no reason was recorded"
        groups[one.status, one.subject, reason].append(f"{one.op} {one.direction} {one.dtype}")
    for subject, record in study.invariances:
        status = str(record.get("status") or "ok")
        if status != "ok":
            reason = clipped(str(record.get("reason") or ""), 600) or "no reason was recorded"
            place = f"{record['op']} {record['direction']} {record['dtype']} (invariance)"
            groups[status, subject, reason].append(place)
    found = [
        Unrun(status, subject, reason, tuple(sorted(set(places))), len(places))
        for (status, subject, reason), places in groups.items()
    ]
    return sorted(
        found,
        key=lambda one: (rank_of_status(one.status), -one.records, one.subject, one.reason),
    )


def sentence(
    *,
    special: int,
    invariants: Iterable[str] = (),
    bound: float | None,
    more: Iterable[str],
    cases: int,
    cases_measured: int,
    where: str = "",
) -> str:
    """What findings say in figures: `error up to 5.0e6 times the bound, ..., in 3 of 8 cases`.

    special      elements with the wrong special value
    bound        the largest error / bound, None where it is left out
    more         parts of the sentence that stand between those and the cases
    where        what follows the number of cases
    """
    parts = []
    if special:
        parts.append(f"{count(special, 'element')} with the wrong special value")
    if names := [clipped(name, 80) for name in invariants]:
        parts.append(f"violates {joined(names)}")
    if bound is not None:
        words = "times" if bound > 1 else "of"
        parts.append(f"error up to {ratio(bound)} {words} the bound")
    return ", ".join([*parts, *more, f"in {cases:,} of {count(cases_measured, 'case')}{where}"])


def point_text(one: Finding) -> str:
    """A finding in figures, in one sentence without its full stop."""
    bound = None if one.verdict == UNUSUAL else one.bound
    nothing_else = not one.special and not one.invariants and bound is None
    more = []
    if one.plain is not None and (one.verdict == UNUSUAL or nothing_else):
        more.append(f"error {figure(one.plain)} times that of the plain algorithm")
    if one.ulp is not None:
        more.append(_size(one))
    return sentence(
        special=one.special,
        invariants=one.invariants,
        bound=bound,
        more=more,
        cases=one.cases,
        cases_measured=one.cases_measured,
    )


def _size(one: Finding) -> str:
    in_ulps = ulps(one.ulp, one.dtype)
    if not lost(one.ulp, one.dtype):
        return f"up to {in_ulps}"
    if one.absolute is None:
        return in_ulps
    return f"{in_ulps} where it is off by {figure(one.absolute)}"


def _finding(key: tuple[str, ...], some: list[Measurement], measured: int) -> Finding:
    op, direction, dtype, subject, output, name = key
    return Finding(
        verdict=verdict_of(name),
        op=op,
        direction=direction,
        dtype=dtype,
        subject=subject,
        output=output,
        cases=len({one.case for one in some}),
        cases_measured=measured,
        ulp=largest(one.ulp_max for one in some),
        bound=largest(one.number("bound", "max_ratio") for one in some),
        plain=largest(one.number("plain", "ratio") for one in some),
        special=sum(one.tally("special_value_mismatches") for one in some),
        invariants=_invariants(some),
        flags=tuple(sorted({flag for one in some for flag in one.flags} - {UNUSUAL.name})),
        worst=worst_of(some),
    )


def _invariants(some: list[Measurement]) -> tuple[str, ...]:
    names = set()
    for one in some:
        violated = one.record.get("invariants_violated")
        names |= {str(name) for name in violated} if isinstance(violated, list) else set()
    return tuple(sorted(names))


def _pair(value: Any) -> tuple[str, str]:
    if not isinstance(value, dict):
        return "", ""
    return _text(value.get("decimal")), _text(value.get("hex"))


def _text(value: Any) -> str:
    return "" if value is None else clipped(str(value), 80)


def _index(value: Any) -> str:
    if not isinstance(value, list):
        return ""
    return "[" + ", ".join(str(one) for one in value) + "]" if value else ""
