"""The matrix: one row per op, one column per target, in each cell a mark for each format.

A mark shows the worst verdict outside edge cases and, if edge cases are worse, theirs too. It links
to the most important finding behind it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from refkernels.reporting.measure.findings import Finding
from refkernels.reporting.measure.inputs import Input, input_of, level_of
from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.words.vocabulary import Verdict, rank_of_dtype, verdict

_ROUNDING = verdict("rounding").rank
_SHORT = {"float16": "16", "bfloat16": "b16", "float32": "32", "float64": "64"}


@dataclass(frozen=True, eq=False)
class Mark:
    """One op, target and format. `verdict` is None if only edge cases were measured, `edge` if
    these show nothing worse. `finding`: the id to link to, "" if all is rounding."""

    dtype: str
    verdict: Verdict | None
    edge: Verdict | None
    finding: str

    @property
    def label(self) -> str:
        """The format, abbreviated: `32`."""
        return _SHORT.get(self.dtype, self.dtype)

    @property
    def style(self) -> Verdict:
        """The verdict that gives the mark its colour."""
        shown = self.verdict or self.edge
        assert shown is not None
        return shown


@dataclass(frozen=True, eq=False)
class MatrixLine:
    """One op: its marks by target, and the status of what did not run at all."""

    op: str
    cells: dict[str, list[Mark]]
    failures: dict[str, str]
    order: int  # the place of its most important finding


def matrix(study: Study, findings: list[Finding]) -> list[MatrixLine]:
    """A line for each op, the op with the most important finding first."""
    groups: dict[tuple[str, str], dict[str, list[Measurement]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for m in study.measurements:
        groups[m.op, m.subject][m.dtype].append(m)
    first: dict[tuple[str, str, str], str] = {}
    importance: dict[str, int] = {}
    for place, finding in enumerate(findings):  # the most important first
        first.setdefault((finding.op, finding.subject, finding.dtype), finding.id)
        importance.setdefault(finding.op, place)
    failed: dict[tuple[str, str], str] = {}
    for failure in study.failures:
        failed.setdefault((failure.op, failure.subject), failure.status)
    lines = []
    for op in sorted({result.op for result in (*study.measurements, *study.failures)}):
        cells = {
            subject: [
                _mark(dtype, measurements, first.get((op, subject, dtype), ""))
                for dtype, measurements in sorted(
                    groups[op, subject].items(), key=lambda item: rank_of_dtype(item[0])
                )
            ]
            for subject in study.subjects
            if (op, subject) in groups
        }
        failures = {name: failed[op, name] for name in study.subjects if (op, name) in failed}
        lines.append(MatrixLine(op, cells, failures, importance.get(op, len(findings))))
    return sorted(lines, key=lambda line: (line.order, line.op))


def _mark(dtype: str, measurements: list[Measurement], finding: str) -> Mark:
    worst: dict[bool, Verdict] = {}
    for m in measurements:
        edge, level = input_of(m) is Input.EDGE, level_of(m)
        if edge not in worst or level.rank < worst[edge].rank:
            worst[edge] = level
    usual, edge_only = worst.get(False), worst.get(True)
    if usual is not None and edge_only is not None:
        worse = edge_only.rank < min(usual.rank, _ROUNDING)
        edge_only = edge_only if worse else None
    return Mark(dtype, usual, edge_only, finding)
