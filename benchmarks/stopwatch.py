"""Contestants timed in turn, round by round, so that a busy machine slows all alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Work = Callable[[], float | None]
"""Does the work once; returns the seconds where it has timed itself (in another process, say)."""


@dataclass
class Row:
    """One contestant's times for one piece of work of one size.

    `elements`: how many were computed in `seconds`; slow contestants compute fewer. `ratios`: to
    `base`, per element, of the rounds where both took part; with `at_least`, of throughputs. `bar`:
    the largest acceptable figure, or the smallest with `at_least`, in `unit`: "x", a ratio, or "s".
    `missing`: why there are no times.
    """

    section: str
    work: str
    size: str
    who: str
    elements: int
    seconds: list[float] = field(default_factory=list)
    base: str | None = None
    ratios: list[float] = field(default_factory=list)
    bar: float | None = None
    at_least: bool = False
    unit: str = "x"
    note: str = ""
    missing: str | None = None

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def per_second(self) -> float | None:
        return self.elements / self.median if self.median else None

    @property
    def figure(self) -> float | None:
        """What the bar is about: the ratio, or seconds."""
        if self.unit == "x":
            return statistics.median(self.ratios) if self.ratios else None
        return self.median

    @property
    def met(self) -> bool | None:
        """None where there is no bar, or no figure."""
        if self.bar is None or self.figure is None:
            return None
        return self.figure >= self.bar if self.at_least else self.figure <= self.bar

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "section": self.section, "work": self.work, "size": self.size, "who": self.who,
            "elements": self.elements, "rounds": len(self.seconds), "median_s": self.median,
            "iqr_s": quartiles(self.seconds), "elements_per_s": self.per_second,
            "base": self.base, "ratio": statistics.median(self.ratios) if self.ratios else None,
            "ratio_iqr": quartiles(self.ratios), "bar": self.bar, "unit": self.unit,
            "at_least": self.at_least, "met": self.met, "note": self.note, "missing": self.missing,
        }  # fmt: skip


def quartiles(values: list[float]) -> list[float] | None:
    """The first and the third; None of fewer than two values."""
    if len(values) < 2:
        return None
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return [first, third]


def race(
    contestants: Mapping[str, tuple[Row, Work]],
    seconds: float,
    rounds: int = 15,
    pause: float = 0.0,
) -> None:
    """Run every contestant once to warm up, then in turn until the time or the rounds are over (at
    least 3 rounds, unless one takes longer than `seconds`). Each waits `pause` seconds first,
    because some thread pools spin after their work, on the next one's cores.

    A contestant that raises is out, with its reason in `missing`. Ratios are filled in afterwards.
    """
    end = time.perf_counter() + seconds
    alive = dict(contestants)
    for name, (row, work) in contestants.items():
        if _run(row, work) is None:
            del alive[name]
    for done in range(rounds):
        began = time.perf_counter()
        for name, (row, work) in list(alive.items()):
            time.sleep(pause)
            taken = _run(row, work)
            if taken is None:
                row.seconds.clear()
                del alive[name]
            else:
                row.seconds.append(taken)
        now = time.perf_counter()
        if now > end and (done >= 2 or now - began > seconds):
            break
    for row, _ in contestants.values():
        base = next((r for r, _ in contestants.values() if r.who == row.base), None)
        if base is not None:
            pairs = zip(row.seconds, base.seconds, strict=False)
            row.ratios = [
                (mine / row.elements) / (theirs / base.elements) for mine, theirs in pairs
            ]
            if row.at_least:
                row.ratios = [1 / ratio for ratio in row.ratios]


def _run(row: Row, work: Work) -> float | None:
    began = time.perf_counter()
    try:
        result = work()
    except Exception as error:
        row.missing = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        return None
    return time.perf_counter() - began if result is None else result
