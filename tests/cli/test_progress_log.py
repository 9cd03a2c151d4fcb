"""A log that is not a terminal gets a line every 10 % or 20 s, never one for each unit."""

from types import SimpleNamespace

import pytest

from refkernels.cli.shared import progress
from refkernels.cli.shared.progress import Log


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_every_tenth_or_twenty_seconds() -> None:
    lines: list[str] = []
    clock = Clock()
    log = Log(lines.append, clock)
    for done in range(401):  # half a second each: 40 units are 10 % and take 20 s
        log.show(done, 400, f"unit {done}")
        clock.now += 0.5
    assert len(lines) == 10
    assert lines[0] == "10 %, 40 of 400, 3 min left: unit 40"
    assert lines[-1] == "100 %, 400 of 400: unit 400"


def test_a_unit_that_takes_long_is_named_while_nothing_else_happens() -> None:
    lines: list[str] = []
    clock = Clock()
    log = Log(lines.append, clock)
    log.show(0, 1000, "first")
    log.beat()
    assert lines == []
    for clock.now in (21.0, 30.0, 42.0):
        log.beat()
    assert lines == ["0 %, 0 of 1,000: first, for 21 s", "0 %, 0 of 1,000: first, for 42 s"]
    log.show(1, 1000, "second")
    clock.now = 61.0
    log.beat()
    clock.now = 63.0
    log.show(2, 1000, "third")
    assert lines[2:] == ["0 %, 2 of 1,000: third"]


def test_the_log_watches_by_itself(monkeypatch) -> None:
    monkeypatch.setattr(Log, "SECONDS", 0.5)
    lines: list[str] = []
    clock = Clock()
    with Log(lines.append, clock) as log:
        log.show(0, 10, "long")
        clock.now = 1.0
        while not lines:
            log._ended.wait(0.1)
    assert lines[0] == "0 %, 0 of 10: long, for 1 s"


def test_a_resumed_run_counts_its_own_time_only() -> None:
    lines: list[str] = []
    clock = Clock()
    log = Log(lines.append, clock, lambda inputs: f"{inputs / 1e6:,.0f} M")
    log.show(900_000_000, 1_000_000_000, "kept before")
    assert lines == []
    clock.now = 20.0
    log.show(910_000_000, 1_000_000_000, "sin")
    assert lines == ["91 %, 910 M of 1,000 M, 3 min left: sin"]


def test_the_first_units_which_wait_for_kernels_tell_no_time_left() -> None:
    lines: list[str] = []
    clock = Clock()
    log = Log(lines.append, clock)
    log.show(0, 1000, "first")
    for done, clock.now in ((3, 20.0), (49, 40.0), (50, 60.0)):
        log.show(done, 1000, "unit")
    assert lines == [
        "0 %, 3 of 1,000: unit",
        "5 %, 49 of 1,000: unit",
        "5 %, 50 of 1,000, 19 min left: unit",
    ]


def test_the_line_that_shows_progress_reads_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def bar(*columns: object, **_: object) -> object:
        drawn.extend(columns)
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "progress_bar", bar)
    with pytest.raises(KeyboardInterrupt), progress.shown("judging"):
        pass
    name = "/[/x]/a.py:gelu"
    assert drawn[-1].render(SimpleNamespace(description=name)).plain == name
