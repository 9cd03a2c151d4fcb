"""Findings: what exceeds rounding, and what is unusual; ordinary inputs first, then the worst.

Measurements of one op, pass, format, output and subject with one verdict are one finding, however
many cases show it.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from refkernels.reporting.measure.ids import finding_id
from refkernels.reporting.measure.inputs import (
    Input,
    Measured,
    Place,
    example_of,
    input_of,
    level_of,
    place_of,
)
from refkernels.reporting.measure.scores import largest, typical
from refkernels.reporting.measure.study import Measurement, Study, absolute_error, as_number
from refkernels.reporting.reading import Record
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.escaping import clipped
from refkernels.reporting.words.forms import avoidable
from refkernels.reporting.words.numerals import figure, lost, ratio, ulp_figure, ulps
from refkernels.reporting.words.report import listed
from refkernels.reporting.words.vocabulary import UNUSUAL, WIDE, Verdict, rank_of_status
from refkernels.reporting.words.vocabulary import verdict as verdict_of
from refkernels.target_names import TargetNameError, parse

_ROUNDING = verdict_of("rounding").rank
_LONGEST_COMMAND = 600  # characters; a longer command is left out


@dataclass(frozen=True, eq=False)
class Finding:
    """One finding, with the measurement that shows it best (`inputs.example_of`)."""

    verdict: Verdict  # UNUSUAL for what is inside the bound but stands out
    op: str
    direction: str
    dtype: str
    subject: str
    output: str
    cases: int
    cases_measured: int
    ulp: float | None
    mean: float | None  # error in ulp, of the typical case
    bound: float | None
    plain: float | None
    special: int
    invariants: tuple[str, ...]
    flags: tuple[str, ...]
    input: Input
    loss: float
    explanation: Record | None
    example: Measurement

    @property
    def id(self) -> str:
        """A name for links: the same in every run."""
        return finding_id(self.example)

    @property
    def place(self) -> Place:
        """Target, op, pass, format and output."""
        return place_of(self.example)

    @property
    def script(self) -> str:
        """A script that asks the framework alone, "" if there is none."""
        return str((self.explanation or {}).get("script") or "")

    @property
    def inputs(self) -> list[tuple[str, str, str, str]]:
        """(name, index, decimal, hex) of the inputs of the worst element; hex is "" for a row,
        which is cut anyway."""
        places = []
        for name, value in (self.example.worst.get("inputs") or {}).items():
            if isinstance(value, dict):
                index = _index(value.get("index"))
                decimal, bits = _text(value.get("decimal")), _text(value.get("hex"))
                places.append((str(name), index, decimal, "" if ", " in decimal else bits))
        return places

    @property
    def index(self) -> str:
        """The worst element's place in the output."""
        return _index(self.example.worst.get("index"))

    @property
    def got(self) -> tuple[str, str]:
        """(decimal, hex) of what the framework returned there."""
        return _pair(self.example.worst.get("got"))

    @property
    def exact(self) -> tuple[str, str]:
        """(decimal, hex) of the exact answer there."""
        return _pair(self.example.worst.get("exact"))

    @property
    def condition(self) -> float | None:
        """The condition number at the worst element."""
        return as_number(self.example.worst.get("condition"))

    @property
    def absolute(self) -> float | None:
        """|got - exact| at the worst element, if no digit of it is right."""
        return absolute_error(self.example)

    @property
    def command(self) -> str:
        """The command that measures the example's case again, "" if one line cannot hold it."""
        record, case, device = self.example.record, self.example.case, self.example.device
        spec = _specification(record)
        settings = [f"{key}={value}" for key, value in _other_settings(record)]
        # A folder of its own keeps it apart from the page's run and from its other commands. With
        # --resume a second call only shows the table again.
        about = "\0".join([spec, case, self.dtype, device, *settings])
        folder = hashlib.sha256(about.encode("utf-8", "replace")).hexdigest()[:8]
        words = ["refkernels", "measure", "--framework", spec, "--case", case]
        words += ["--dtype", self.dtype, "--device", device or "cpu"]
        for setting in settings:
            words += ["--set", setting]
        words += ["--out", f"again/{folder}", "--resume"]
        line = shlex.join(words)
        return line if line.isprintable() and len(line) <= _LONGEST_COMMAND else ""


def _specification(record: dict[str, Any]) -> str:
    """The target as `--framework` takes it, in the version that answered; as it was named if that
    is no version of PEP 440."""
    framework = str(record["framework"])
    try:
        name = parse(framework)
        return str(replace(name, version=str(record.get("version") or name.version)))
    except TargetNameError:
        return framework


def _other_settings(record: dict[str, Any]) -> list[tuple[str, str]]:
    """The settings that are not in the target's own name."""
    try:
        in_name = dict(parse(str(record["framework"])).settings)
    except TargetNameError:
        in_name = {}
    settings = record.get("settings") or {}
    return sorted((key, str(settings[key])) for key in settings if key not in in_name)


def findings(study: Study) -> list[Finding]:
    """All findings in order: by how ordinary the input is, then wide formats first, then what is
    beyond the bound first, then by loss."""
    cases: dict[tuple[str, ...], set[str]] = defaultdict(set)
    groups: dict[tuple[str, ...], list[Measurement]] = defaultdict(list)
    for m in study.measurements:
        place = (m.op, m.direction, m.dtype, m.subject, m.output)
        cases[place].add(m.case)
        level = level_of(m)
        if level.rank < _ROUNDING:
            groups[(*place, level.name)].append(m)
    measured = Measured(study)
    unsorted = [
        _finding(key, members, len(cases[key[:5]]), study, measured)
        for key, members in groups.items()
    ]
    return sorted(
        unsorted,
        key=lambda finding: (
            finding.input,
            finding.dtype not in WIDE,
            finding.verdict == UNUSUAL,
            -finding.loss,
            (finding.op, finding.direction, finding.dtype, finding.subject, finding.output),
            finding.verdict.name,
        ),
    )


@dataclass(frozen=True, eq=False)
class Unrun:
    """What one subject did not run for one reason: one status, one sentence."""

    status: str
    subject: str
    reason: str
    places: tuple[str, ...]  # "sin backward float16"
    records: int


def unrun(study: Study) -> list[Unrun]:
    """What did not run, grouped by reason, faults first and `unsupported` last. Reasons that differ
    only in the op, pass or format that they name are one, with "…" in its place."""
    groups: dict[tuple[str, str, str], list[tuple[str, str]]] = defaultdict(list)
    missing = [(failure.subject, failure.record, "") for failure in study.failures]
    missing += [(subject, record, " (invariance)") for subject, record in study.invariances]
    for subject, record, suffix in missing:
        status = str(record.get("status") or "ok")
        if status == "ok":
            continue
        reason = str(record.get("reason") or "").removeprefix(f"{record.get('framework')}: ")
        reason = clipped(reason, 600) or "no reason was recorded"
        about = tuple(str(record[name]) for name in ("op", "direction", "dtype"))
        words = re.compile(rf"\b(?:{'|'.join(map(re.escape, about))})\b")
        place = f"{' '.join(about)}{suffix}"
        groups[status, subject, words.sub("…", reason)].append((reason, place))
    unsorted = []
    for (status, subject, blanked), members in groups.items():
        reasons = {reason for reason, _ in members}
        reason = blanked if len(reasons) > 1 else reasons.pop()
        places = tuple(sorted({place for _, place in members}))
        unsorted.append(Unrun(status, subject, reason, places, len(members)))
    return sorted(
        unsorted,
        key=lambda gap: (rank_of_status(gap.status), -gap.records, gap.subject, gap.reason),
    )


def point_text(finding: Finding, words: Texts) -> str:
    """A finding's figures: `error up to 5.0e6 times the bound, up to 27 ulp, in 3 of 8 cases`."""
    parts = _faults(finding, words, "point:")
    if finding.ulp is not None:
        parts.append(_size(finding, words))
    key = "point:cases" if finding.cases_measured > 1 else "point:case"
    parts.append(words(key, cases=f"{finding.cases:,}", measured=f"{finding.cases_measured:,}"))
    return words["comma"].join(parts)


def row_cells(finding: Finding, words: Texts) -> tuple[str, str, str]:
    """The same for a table: error / bound or what else is wrong, the largest error in ulp, and how
    many of the cases show it."""
    size = ulp_figure(finding.ulp, finding.dtype, words.lang) if finding.ulp is not None else ""
    if lost(finding.ulp, finding.dtype) and finding.absolute is not None:
        size = words("row:off", ulp=size, size=figure(finding.absolute))
    faults = words["comma"].join(_faults(finding, words, "row:"))
    return faults, size, f"{finding.cases:,}/{finding.cases_measured:,}"


def _faults(finding: Finding, words: Texts, form: str) -> list[str]:
    """What is wrong, without the size of the error."""
    parts = []
    if finding.special:
        parts.append(words(f"{form}special", n=f"{finding.special:,}"))
    if names := [clipped(name, 80) for name in finding.invariants]:
        parts.append(words("violates", names=listed(words, names)))
    inside = (finding.bound or 0) <= 1
    if finding.verdict != UNUSUAL and finding.bound and not (inside and finding.special):
        key = "inside" if inside else "bound"
        parts.append(words(f"{form}{key}", bound=ratio(finding.bound)))
    if finding.plain is not None and not parts:
        parts.append(words(f"{form}plain", plain=figure(finding.plain)))
    clause = avoidable(finding.example.record, finding.dtype, words.lang)
    return [*parts, clause] if clause else parts


def _size(finding: Finding, words: Texts) -> str:
    in_ulps = ulps(finding.ulp, finding.dtype, words.lang)
    if not lost(finding.ulp, finding.dtype):
        return words("point:ulp", ulp=in_ulps)
    if finding.absolute is None:
        return in_ulps
    return words("point:off", ulp=in_ulps, size=figure(finding.absolute))


def _finding(
    key: tuple[str, ...], members: list[Measurement], cases: int, study: Study, measured: Measured
) -> Finding:
    explained = [m for m in members if study.explanation_of(m) is not None]
    example = example_of(explained or members)
    op, direction, dtype, subject, output, name = key
    return Finding(
        verdict=verdict_of(name),
        op=op,
        direction=direction,
        dtype=dtype,
        subject=subject,
        output=output,
        cases=len({m.case for m in members}),
        cases_measured=cases,
        ulp=largest(m.ulp_max for m in members),
        bound=largest(m.number("bound", "max_ratio") for m in members),
        plain=largest(m.number("plain", "ratio") for m in members),
        special=sum(m.tally("special_value_mismatches") for m in members),
        invariants=_invariants(members),
        flags=tuple(sorted({flag for m in members for flag in m.flags} - {UNUSUAL.name})),
        mean=typical(m.number("ulp", "mean") for m in members),
        input=min(input_of(m) for m in members),
        loss=measured.loss(members),
        explanation=study.explanation_of(example),
        example=example,
    )


def _invariants(members: list[Measurement]) -> tuple[str, ...]:
    names = set()
    for m in members:
        violated = m.record.get("invariants_violated")
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
    return "[" + ", ".join(str(number) for number in value) + "]" if value else ""
