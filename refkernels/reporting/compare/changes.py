"""What changed between two runs, for the same target, op, pass, format, output and case in both.

fixed, new       the output was beyond rounding or unusual and is neither now, or the reverse
worse, better    the verdict changed otherwise, or the mean error by more than a bit (a factor of 2;
                 errors below 0.25 ulp, the mean error of correct rounding, count as 0.25 ulp)
bits             only the bits changed
judged           the verdict changed but no bit did: the instrument changed
broken, runs     the output was measured before but failed now, or the reverse
gone, added      only the old run, or only the new run, has a record of it
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

from refkernels.reporting.measure.ids import finding_id
from refkernels.reporting.measure.inputs import input_of, level_of, loss, place_of
from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.words.vocabulary import WIDE, verdict

KINDS = ("new", "broken", "worse", "fixed", "better", "judged", "runs", "bits", "gone", "added")
"""All kinds but "same", in the order of the page."""
SETBACKS = ("new", "broken", "worse")
IN_BOTH = ("same", "bits", "judged", "new", "fixed", "worse", "better")
_ROUNDING = verdict("rounding").rank
_CORRECT = 0.25  # ulp: the mean error of results that are correctly rounded
_BIT = 2.0

Pair = tuple[Measurement | None, Measurement | None]
"""Before and now, at one place."""


@dataclass(frozen=True, eq=False)
class Change:
    """One kind of change of one target, op, pass, format and output, in some cases."""

    kind: str
    output: str
    pairs: list[Pair]  # one for each case

    @cached_property
    def example(self) -> Pair:
        """The pair to show: the one with the most ordinary input (that of the less ordinary side),
        of these the one with the greatest loss."""
        return min(self.pairs, key=_importance)

    @property
    def shown(self) -> Measurement:
        """The measurement to show: the example as it is now or, if it is gone, as it was."""
        return [m for m in self.example if m is not None][-1]

    @property
    def cases(self) -> list[str]:
        """The cases that show it."""
        return sorted({m.case for pair in self.pairs for m in pair if m is not None})

    @property
    def finding(self) -> str:
        """The id of its finding in the new run's report; "" if there is none."""
        now = self.example[1]
        bad = now is not None and now.status == "ok" and level_of(now).rank < _ROUNDING
        return finding_id(now) if now is not None and bad else ""

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key: by kind, then the most important."""
        kind, (input_kind, *further) = KINDS.index(self.kind), _importance(self.example)
        narrow = self.shown.dtype not in WIDE
        return kind, input_kind, narrow, *further, *place_of(self.shown)[:4], self.output


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Two runs: what changed, the most important first, and how many outputs did not change."""

    changes: list[Change]
    counts: Counter[str]  # outputs by kind, with "same"
    versions: list[tuple[str, str, str]]  # target, before, now, of those that differ

    @property
    def both(self) -> int:
        """How many outputs both runs measured."""
        return sum(self.counts[kind] for kind in IN_BOTH)

    @property
    def setbacks(self) -> int:
        """How many outputs are worse than they were, in any way."""
        return sum(self.counts[kind] for kind in SETBACKS)


def compare(old: Study, new: Study) -> RunComparison:
    """What changed from `old` to `new`."""
    before, now = _by_place(old, new), _by_place(new, old)
    groups: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for place in sorted({*before, *now}):
        pair = before.get(place), now.get(place)
        kind = _kind(*pair)
        counts[kind] += 1
        if kind != "same":
            groups[(kind, *place[:5])].append(pair)
    changes = [Change(key[0], key[5], pairs) for key, pairs in groups.items()]
    changes.sort(key=lambda change: change.order)
    return RunComparison(changes, counts, _versions(old, new))


def _by_place(study: Study, other: Study) -> dict[tuple[str, ...], Measurement]:
    """Every output by its place and case. A failure has no outputs: it stands for every output that
    the other run has there."""
    outputs: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for m in other.measurements:
        outputs[(*place_of(m)[:4], m.case)].append(m.output)
    by_place: dict[tuple[str, ...], Measurement] = {}
    for m in (*study.failures, *study.measurements):
        place = place_of(m)[:4]
        known = [] if m.status == "ok" else outputs.get((*place, m.case), [])
        by_place.update({(*place, output, m.case): m for output in known or [m.output]})
    return by_place


def _kind(before: Measurement | None, now: Measurement | None) -> str:
    if before is None or before.status != "ok":
        ran = now is not None and now.status == "ok"
        if before is None:
            return "added"
        return "runs" if ran else "same" if now is not None else "gone"
    if now is None:
        return "gone"
    if now.status != "ok":
        return "broken"
    old, new = level_of(before).rank, level_of(now).rank
    digests = before.record.get("digest"), now.record.get("digest")
    if digests[0] is not None and digests[0] == digests[1]:
        return "same" if old == new else "judged"
    if (old < _ROUNDING) != (new < _ROUNDING):
        return "new" if new < _ROUNDING else "fixed"
    if old != new:
        return "worse" if new < old else "better"
    ratio = _mean(now) / _mean(before)
    if ratio > _BIT or ratio < 1.0 / _BIT:
        return "worse" if ratio > 1.0 else "better"
    return "bits"


def _mean(measurement: Measurement) -> float:
    mean = measurement.number("ulp", "mean")
    if mean is None:
        return _CORRECT
    return max(_CORRECT, mean) if math.isfinite(mean) else 2.0**1023


def _importance(pair: Pair) -> tuple[float, float, str]:
    results = [m for m in pair if m is not None and m.status == "ok"]
    if not results:
        return (math.inf, 0.0, "")
    return (max(map(input_of, results)), -max(map(loss, results)), results[0].case)


def _versions(old: Study, new: Study) -> list[tuple[str, str, str]]:
    before, now = (
        {m.subject: str(m.record.get("version") or "") for m in (*s.measurements, *s.failures)}
        for s in (old, new)
    )
    both = sorted(before.keys() & now.keys())
    return [(name, before[name], now[name]) for name in both if before[name] != now[name]]
