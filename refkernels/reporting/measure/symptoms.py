"""Symptoms: findings gathered until one cause takes one line, what matters first.

Ops measured in the same regimes (sin, cos and tan) are one family. Within one family, format and
subject, findings that share a verdict or a pass are one symptom; the same symptom in another
format, or of another subject in exactly the same regimes, stands in the same line.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace

from refkernels.reporting.measure.findings import sentence
from refkernels.reporting.measure.scores import falling, largest, typical
from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.words.numerals import joined, ulps
from refkernels.reporting.words.vocabulary import WIDE, Verdict, rank_of_direction, rank_of_dtype
from refkernels.reporting.words.vocabulary import verdict as verdict_of

_ROUNDING = verdict_of("rounding").rank
FLUSHED = "flushed_subnormals"
SPECIAL_INPUTS = "specials"  # the regime whose inputs are NaN, infinities and zeros
# An error 2**29 times that of float64 is that of float32, whose significand is 29 bits shorter;
# four binades on either side allow for what an algorithm adds or saves.
_AS_FLOAT32 = (2.0**25, 2.0**33)


@dataclass(frozen=True, eq=False)
class Symptom:
    """What may have one cause: the subjects, ops and formats that show it, and in which cases."""

    some: tuple[Measurement, ...]
    cases_measured: int
    all_outputs: frozenset[str]
    all_regimes: frozenset[str]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict."""
        return min((one.verdict for one in self.some), key=lambda one: (one.rank, one.name))

    @property
    def subjects(self) -> list[str]:
        """Who shows it, most measurements first."""
        tally: dict[str, int] = defaultdict(int)
        for one in self.some:
            tally[one.subject] += 1
        return sorted(tally, key=lambda name: (-tally[name], name))

    @property
    def what(self) -> str:
        """`cos, sin and tan forward, float64`."""
        ops = sorted({one.op for one in self.some})
        directions = sorted({one.direction for one in self.some}, key=rank_of_direction)
        dtypes = sorted({one.dtype for one in self.some}, key=rank_of_dtype)
        return f"{joined(ops)} {joined(directions)}, {joined(dtypes)}"

    @property
    def regimes(self) -> frozenset[str]:
        """The regimes in which it shows."""
        return frozenset(one.regime for one in self.some)

    @property
    def bound(self) -> float | None:
        """The largest error / bound."""
        return largest(one.number("bound", "max_ratio") for one in self.some)

    @property
    def badness(self) -> tuple[object, ...]:
        """Sort key: wide formats first, ordinary inputs before special ones, then the verdict."""
        wide = any(one.dtype in WIDE for one in self.some)
        special = self.regimes <= {SPECIAL_INPUTS}
        return (not wide, special, self.verdict.rank, -falling(self.bound), self.what)

    @property
    def text(self) -> str:
        """What it says in figures, in one sentence without its full stop."""
        wrong = sum(one.tally("special_value_mismatches") for one in self.some)
        bound = self.bound
        more = []
        mean = typical(one.number("ulp", "mean") for one in self.some)
        if mean is not None and not wrong:
            top = largest(one.ulp_max for one in self.some)
            dtype = max((one.dtype for one in self.some), key=rank_of_dtype)
            more.append(f"typically {ulps(mean, dtype)}, at most {ulps(top, dtype)}")
        few = len(self.regimes) <= 2 < len(self.all_regimes)
        return sentence(
            special=wrong,
            bound=bound if bound is not None and bound > 1 else None,
            more=[*more, *self._chief_output(), *self._hints()],
            cases=len({one.case for one in self.some}),
            cases_measured=self.cases_measured,
            where=f" ({joined(sorted(self.regimes))})" if few else "",
        )

    def _chief_output(self) -> list[str]:
        """The output that shows it alone, or nine times of ten, where the op has several."""
        (name, number), *_ = Counter(one.output for one in self.some).most_common(1)
        if len(self.all_outputs) == 1 or number < 0.9 * len(self.some):
            return []
        return [f"{'only' if number == len(self.some) else 'mostly'} {name}"]

    def _hints(self) -> list[str]:
        if all(FLUSHED in one.flags for one in self.some):
            return ["tiny (subnormal) results replaced by 0"]
        plain = typical(one.number("plain", "ratio") for one in self.some)
        low, high = _AS_FLOAT32
        if {one.dtype for one in self.some} == {"float64"} and plain and low <= plain <= high:
            return ["as accurate as float32 inside would be"]
        return []


def symptoms(study: Study) -> list[Symptom]:
    """All symptoms beyond rounding, what matters first."""
    regimes: dict[str, set[str]] = defaultdict(set)
    cases: dict[str, set[str]] = defaultdict(set)
    outputs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in study.measurements:
        regimes[one.op].add(one.regime)
        cases[one.op].add(one.case)
        outputs[one.op, one.direction].add(one.output)
    bad: dict[tuple[object, ...], list[Measurement]] = defaultdict(list)
    for one in study.measurements:
        if one.verdict.rank < _ROUNDING:
            family = frozenset(regimes[one.op])
            flushed = FLUSHED in one.flags
            bad[one.subject, family, flushed, "" if flushed else one.dtype].append(one)
    found = []
    for key, some in bad.items():
        for part in [some] if key[2] else _connected(some):
            ops = {one.op for one in part}
            places = {(one.op, one.direction) for one in part}
            found.append(
                Symptom(
                    tuple(part),
                    sum(len(cases[op]) for op in ops),
                    frozenset(name for place in places for name in outputs[place]),
                    frozenset().union(*(regimes[op] for op in ops)),
                )
            )
    for same in ("subjects", "dtypes"):
        found = _merged(found, same, cases)
    return sorted(found, key=lambda one: one.badness)


def _connected(some: list[Measurement]) -> list[list[Measurement]]:
    """Parts in which every two are linked by a chain of shared verdicts or passes."""
    parts: list[tuple[set[str], list[Measurement]]] = []
    for one in some:
        marks = {one.verdict.name, one.direction}
        touching = [part for part in parts if part[0] & marks]
        names, members = set(marks), []
        for part in touching:
            names |= part[0]
            members += part[1]
            parts.remove(part)
        parts.append((names, [*members, one]))
    return [members for _, members in parts]


def _merged(found: list[Symptom], same: str, cases: dict[str, set[str]]) -> list[Symptom]:
    """Symptoms of the same regimes, of one subject or in one format, joined."""
    groups: dict[tuple[object, ...], list[Symptom]] = defaultdict(list)
    for one in found:
        flushed = all(FLUSHED in each.flags for each in one.some)
        who = (
            tuple(one.subjects)
            if same == "subjects"
            else tuple(sorted({each.dtype for each in one.some}))
        )
        groups[who, one.regimes, one.all_regimes, one.verdict.name, flushed].append(one)
    joined_up = []
    for alike in groups.values():
        some = tuple(each for one in alike for each in one.some)
        measured = sum(len(cases[op]) for op in {each.op for each in some})
        outputs = frozenset().union(*(one.all_outputs for one in alike))
        joined_up.append(replace(alike[0], some=some, cases_measured=measured, all_outputs=outputs))
    return joined_up
