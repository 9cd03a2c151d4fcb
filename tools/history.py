"""Keeps the results of a run in a small file, and reads the files of all machines.

python tools/history.py FOLDER [DATE]

writes benchmarks/history/DATE-FOLDER.json from FOLDER/records.jsonl: for each seat, op, pass and
format the verdict, the largest error / bound, the number of correctly rounded results, and two
fingerprints: of the cases, and of the bits of all results. Formulas that an adapter composes of a
framework's ops are left out.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from refkernels.records import codec
from refkernels.records.files import write_whole
from refkernels.reporting.measure.scores import Score, score
from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.reading import read_records
from refkernels.reporting.words.vocabulary import verdict
from refkernels.seat_names import parse

KEPT = Path(__file__).parent.parent / "benchmarks" / "history"


class Figure(NamedTuple):
    """One seat's results on one op, pass and format; a line of the file."""

    seat: str
    place: str  # "sin forward float32"
    verdict: str
    bound: float | str | None
    decided: int  # results; in runs before 2026-11-23 only those that have an error in ulp
    correct: int  # the correctly rounded ones
    cases: int
    case_names: str  # a fingerprint
    bits: str  # a fingerprint, "" where a result has none

    @property
    def score(self) -> Score:
        """The figure as a score of the report."""
        bound = codec.number(self.bound)
        return Score(verdict(self.verdict), False, self.correct, self.decided, None, None, bound)


@dataclass(frozen=True)
class Run:
    """One run on one machine."""

    date: str
    machine: str
    cpu: str
    figures: tuple[Figure, ...]

    @cached_property
    def by_place(self) -> dict[tuple[str, str], Figure]:
        """The figures by seat and place."""
        return {(figure.seat, figure.place): figure for figure in self.figures}

    @property
    def seats(self) -> list[str]:
        """The seats that answered, with versions."""
        return sorted({figure.seat for figure in self.figures})

    @property
    def ops(self) -> int:
        """How many ops were measured."""
        return len({figure.place.split(" ")[0] for figure in self.figures})


def summary(records: list[dict[str, Any]], machine: str, date: str) -> Run:
    """The figures of a run, which its file keeps."""
    study = Study.of(records)
    groups: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for measurement in study.measurements:
        if not measurement.record.get("formula"):
            place = f"{measurement.op} {measurement.direction} {measurement.dtype}"
            groups[_seat(measurement), place].append(measurement)
    figures = tuple(_figure(*key, group) for key, group in sorted(groups.items()))
    return Run(date, machine, str(study.environments[0]["cpu"]), figures)


def _seat(measurement: Measurement) -> str:
    record = measurement.record
    version = str(record.get("version") or "").partition("+")[0]
    settings = [f"{k}={v}" for k, v in sorted((record.get("settings") or {}).items())]
    device = [measurement.device] if measurement.device not in ("", "cpu") else []
    name = parse(record["framework"]).framework or str(record["framework"])  # a kernel's
    return " ".join([name, version, *device, *settings])


def _figure(seat: str, place: str, measurements: list[Measurement]) -> Figure:
    scores = score(measurements)
    bits = [(m.case, m.output, str(m.record.get("digest") or "")) for m in measurements]
    all_have_digests = all(digest for *_, digest in bits)
    bound = None if scores.bound is None else codec.figure(float(f"{scores.bound:.6g}"))
    cases = {case for case, *_ in bits}
    return Figure(
        seat, place, scores.verdict.name, bound, scores.decided, scores.correct, len(cases),
        _fingerprint(sorted(cases)), _fingerprint(sorted(bits)) if all_have_digests else "",
    )  # fmt: skip


def _fingerprint(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]


def keep(run: Run, folder: Path = KEPT) -> Path:
    """Write the file of a run, one figure to a line."""
    head = json.dumps({"date": run.date, "machine": run.machine, "cpu": run.cpu})
    lines = ",\n".join(codec.dumps(list(figure)) for figure in run.figures)
    text = f'{head[:-1]}, "figures": [\n{lines}\n]}}\n'
    return write_whole(folder / f"{run.date}-{run.machine}.json", text)


def kept(folder: Path = KEPT) -> list[Run]:
    """The runs that are kept, in order of their dates."""
    runs = []
    for path in sorted(folder.glob("*.json")):
        stored = json.loads(path.read_text(encoding="utf-8"))
        figures = tuple(Figure(*line) for line in stored.pop("figures"))
        runs.append(Run(figures=figures, **stored))
    return runs


def best(runs: Iterable[Run]) -> dict[tuple[str, str], Figure]:
    """By seat and place the figure over the most cases, the newest of several."""
    figures: dict[tuple[str, str], Figure] = {}
    for run in runs:
        for place, figure in run.by_place.items():
            if place not in figures or figures[place].cases <= figure.cases:
                figures[place] = figure
    return figures


class Change(NamedTuple):
    """One figure over the same cases in two runs."""

    before: Figure
    now: Figure

    @property
    def same_bits(self) -> bool:
        """Whether all results have the same bits: then only the judgement changed."""
        return bool(self.now.bits) and self.before.bits == self.now.bits


def both(old: Run, new: Run) -> Iterator[Change]:
    """The figures over the same cases in both runs, of a seat in the same or another version."""
    versions: dict[tuple[str, str], Figure] = {}
    for figure in old.figures:
        versions[_versionless(figure.seat), figure.place] = figure
    for figure in new.figures:
        before = old.by_place.get((figure.seat, figure.place))
        before = before or versions.get((_versionless(figure.seat), figure.place))
        if before is not None and before.case_names == figure.case_names:
            yield Change(before, figure)


def _versionless(seat: str) -> str:
    framework, _, *settings = [*seat.split(" "), ""]
    return " ".join([framework, *settings])


def main() -> None:
    folder = Path(sys.argv[1])
    date = sys.argv[2] if len(sys.argv) > 2 else datetime.date.today().isoformat()
    print(keep(summary(read_records(folder / "records.jsonl"), folder.name, date)))


if __name__ == "__main__":
    main()
