"""How far each subject is from the truth: measurements gathered per op, pass, format, subject.

Maxima are over all cases. The mean of a score is that of the *typical case* (the upper median over
cases): a mean over hard and easy cases together would describe neither. So every figure of a score
appears in a record.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.words.vocabulary import (
    UNUSUAL,
    WIDE,
    Verdict,
    rank_of_direction,
    rank_of_dtype,
)


@dataclass(frozen=True, eq=False)
class Score:
    """The result of one subject on one op, pass and format, over all cases and outputs."""

    verdict: Verdict
    unusual: bool  # some measurement carries the flag
    correct: int  # number of results that are correctly rounded
    decided: int  # number of results for which that was decided
    ulp_max: float | None
    ulp_mean: float | None
    bound: float | None

    @property
    def badness(self) -> tuple[float, ...]:
        """Sort key, worst first: the verdict, then `unusual`, error / bound, max ulp."""
        rank = min(self.verdict.rank, UNUSUAL.rank) if self.unusual else self.verdict.rank
        return (rank, -falling(self.bound), -falling(self.ulp_max))


@dataclass(frozen=True, eq=False)
class ScoreRow:
    """One format of one op and pass: a score per subject, or the statuses of what did not run."""

    dtype: str
    scores: dict[str, Score]
    failures: dict[str, list[Measurement]]

    @property
    def badness(self) -> tuple[object, ...]:
        """Sort key: float32 and float64 before the 16-bit formats, then worst first."""
        worst = min((score.badness for score in self.scores.values()), default=(math.inf,))
        return (self.dtype not in WIDE, *worst, rank_of_dtype(self.dtype))


@dataclass(frozen=True, eq=False)
class Block:
    """One op in one pass, with a row per format."""

    op: str
    direction: str
    rows: list[ScoreRow] = field(default_factory=list)

    @property
    def title(self) -> str:
        """`layernorm backward`."""
        return f"{self.op} {self.direction}"


def blocks(study: Study) -> list[Block]:
    """The score board, worst block first and worst format first in each."""
    measured = _grouped(study.measurements)
    failed = _grouped(study.failures)
    by_pass: dict[tuple[str, str], Block] = {}
    for op, direction, dtype in sorted({key[:3] for key in (*measured, *failed)}):
        block = by_pass.setdefault((op, direction), Block(op, direction))
        place = (op, direction, dtype)
        scores = {
            key[3]: score(measurements)
            for key, measurements in measured.items()
            if key[:3] == place
        }
        failures = {
            key[3]: measurements for key, measurements in failed.items() if key[:3] == place
        }
        block.rows.append(ScoreRow(dtype, scores, failures))
    for block in by_pass.values():
        block.rows.sort(key=lambda row: row.badness)
    return sorted(
        by_pass.values(),
        key=lambda block_: (
            block_.rows[0].badness[:-1],
            block_.op,
            rank_of_direction(block_.direction),
        ),
    )


def score(measurements: list[Measurement]) -> Score:
    """The score of measurements with status ok; there is at least one."""
    return Score(
        verdict=min((m.verdict for m in measurements), key=lambda m: (m.rank, m.name)),
        unusual=any(m.unusual for m in measurements),
        correct=sum(m.rounded[0] for m in measurements),
        decided=sum(m.rounded[1] for m in measurements),
        ulp_max=largest(m.ulp_max for m in measurements),
        ulp_mean=typical(m.number("ulp", "mean") for m in measurements),
        bound=largest(m.number("bound", "max_ratio") for m in measurements),
    )


def largest(values: Iterable[float | None]) -> float | None:
    """The largest number; NaN counts as larger than all, None as absent."""
    present = [value for value in values if value is not None]
    return max(present, key=falling) if present else None


def typical(values: Iterable[float | None]) -> float | None:
    """The upper median: always one of the values, never an average of two."""
    present = sorted((value for value in values if value is not None), key=falling)
    return present[len(present) // 2] if present else None


def falling(value: float | None) -> float:
    """A key under which NaN is worst and None is best."""
    if value is None:
        return -math.inf
    return math.inf if math.isnan(value) else value


def _grouped(
    measurements: list[Measurement],
) -> dict[tuple[str, str, str, str], list[Measurement]]:
    groups: dict[tuple[str, str, str, str], list[Measurement]] = defaultdict(list)
    for m in measurements:
        groups[m.op, m.direction, m.dtype, m.subject].append(m)
    return groups
