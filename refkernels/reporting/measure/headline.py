"""The first paragraph: what was measured, what came out, what failed, all from the records."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from refkernels.reporting.measure.comparisons import invariances
from refkernels.reporting.measure.findings import Finding, findings, point_text
from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.measure.symptoms import Symptom, symptoms
from refkernels.reporting.words.escaping import clipped
from refkernels.reporting.words.numerals import count, joined, large, share
from refkernels.reporting.words.vocabulary import (
    Verdict,
    meaning_of_status,
    rank_of_dtype,
    rank_of_status,
    verdict,
)

_ROUNDING = verdict("rounding").rank
MOST_POINTS = 8


@dataclass(frozen=True)
class Point:
    """One of the few findings that matter most, in one sentence."""

    verdict: Verdict
    subject: str
    what: str
    text: str


@dataclass(frozen=True)
class Headline:
    """The summary: sentences of one paragraph, the chief points, the tally of verdicts."""

    sentences: list[str]
    points: list[Point]
    findings: int  # lines in the section of findings
    further: int  # symptoms beyond the points
    tally: list[tuple[Verdict, int]]  # worst first
    unusual: int
    failed: int  # faults
    unsupported: int  # no faults: not offered


def headline(study: Study) -> Headline:
    """The headline of a study."""
    tally = Counter(one.verdict for one in study.measurements)
    unusual = sum(one.unusual and one.verdict.rank >= _ROUNDING for one in study.measurements)
    all_findings = findings(study)
    sentences = [_what(study)]
    if study.measurements:
        sentences += [_verdicts(study, tally, unusual), *_clean(study, all_findings)]
    sentences += [*_failures(study), *_invariance(study)]
    if study.unknown:
        sentences.append(
            f"{count(study.unknown, 'record')} of a kind that this version does not know "
            f"{'is' if study.unknown == 1 else 'are'} left out."
        )
    all_symptoms = symptoms(study)
    points = [_point(one) for one in all_symptoms[:MOST_POINTS]] or [
        _unusual_point(one) for one in all_findings[:MOST_POINTS]
    ]
    return Headline(
        sentences=sentences,
        points=points,
        findings=len(all_findings),
        further=max(0, len(all_symptoms) - MOST_POINTS),
        tally=sorted(tally.items(), key=lambda item: (item[0].rank, item[0].name)),
        unusual=unusual,
        failed=sum(one.status != "unsupported" for one in study.failures),
        unsupported=sum(one.status == "unsupported" for one in study.failures),
    )


def _place(one: Finding) -> str:
    return f"{one.op} {one.direction} {one.dtype}, {one.output}"


def _what(study: Study) -> str:
    if not study.measurements and not study.failures:
        return "There are no measurements in these records."
    taken = study.measurements or study.failures
    named = sorted({_named(one) for one in taken})
    devices = sorted({one.device for one in taken if one.device}) or ["unnamed devices"]
    ops = len({one.op for one in taken})
    dtypes = sorted({one.dtype for one in taken}, key=rank_of_dtype)
    scope = f"{count(ops, 'op')} in {joined(dtypes)}"
    if not study.measurements:
        tried = count(len(study.failures), "measurement")
        return f"None of {tried} of {joined(named)} on {joined(devices)} ({scope}) gave a result."
    elements = sum(one.tally("compared") for one in study.measurements)
    return (
        f"{joined(named)} on {joined(devices)}: "
        f"{count(len(study.measurements), 'measurement')} of {scope}, {large(elements)} elements, "
        "each compared with a certified exact answer."
    )


def _named(one: Measurement) -> str:
    return " ".join(filter(None, (one.record["framework"], str(one.record.get("version") or ""))))


def _verdicts(study: Study, tally: Counter[Verdict], unusual: int) -> str:
    total = len(study.measurements)
    fine = sum(number for one, number in tally.items() if one.rank >= _ROUNDING)
    exact = sum(n for one, n in tally.items() if one.name == "correctly_rounded")
    if fine == total:
        text = f"All measurements show rounding at most ({exact:,} are exact to the last bit)"
    else:
        bad = [
            f"{number:,} {one.short}"
            for one, number in sorted(tally.items(), key=lambda item: item[0].rank)
            if one.rank < _ROUNDING
        ]
        text = (
            f"{share(fine, total)} of the measurements show rounding at most ({exact:,} are exact "
            f"to the last bit); {total - fine:,} do not: {joined(bad)}"
        )
    if unusual:
        are = "is" if unusual == 1 else "are"
        text += f"; {unusual:,} more {are} inside the bound but unusually inaccurate"
    return text + "."


def _clean(study: Study, found: list[Finding]) -> list[str]:
    marked = {one.subject for one in found}
    clean = sorted({one.subject for one in study.measurements} - marked)
    if not clean or not found:
        return []
    return [f"Nothing beyond ordinary rounding was seen in {joined(clean)}."]


def _failures(study: Study) -> list[str]:
    groups: dict[str, list[Measurement]] = defaultdict(list)
    for one in study.failures:
        groups[one.status].append(one)
    sentences = []
    for status in sorted(groups, key=lambda name: (rank_of_status(name), name)):
        some = groups[status]
        if status == "unsupported":
            sentences.append(f"{len(some):,} are not offered by a framework.")
            continue
        who = joined(sorted({one.subject for one in some}))
        reasons = sorted({one.reason for one in some if one.reason})
        text = (
            f"{count(len(some), 'measurement')} did not run in {who}: {meaning_of_status(status)}"
        )
        if reasons:
            more = f" and {count(len(reasons) - 1, 'other reason')}" if len(reasons) > 1 else ""
            text += f" (“{clipped(reasons[0], 90)}”{more})"
        sentences.append(text + ".")
    return sentences


def _invariance(study: Study) -> list[str]:
    words = {
        "run_to_run": "run",
        "position": "position in the array",
        "batch": "batch around an element",
        "threads": "number of threads",
    }
    broken: dict[str, set[str]] = defaultdict(set)
    for table in invariances(study):
        for name, _, cells in table.rows:
            for subject, held in cells.items():
                if held.broken:
                    broken[name].add(subject)
    if not broken:
        return []
    order = sorted(broken, key=lambda name: (-len(broken[name]), name))
    parts = [f"the {words.get(name, name)} ({joined(sorted(broken[name]))})" for name in order[:5]]
    return [f"Bits depend on {joined(parts)}."]


def _point(one: Symptom) -> Point:
    return Point(one.verdict, joined(one.subjects), one.what, one.text)


def _unusual_point(one: Finding) -> Point:
    """A point where nothing is beyond rounding: all that is left is unusual."""
    return Point(one.verdict, one.subject, _place(one), point_text(one))
