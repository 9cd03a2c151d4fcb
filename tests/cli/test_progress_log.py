"""A log that is not a terminal gets a line from time to time, never one for each unit."""

import threading
from types import SimpleNamespace

import pytest
from rich.progress import Progress

from refkernels.cli.shared import progress


def test_a_line_says_how_much_is_done_and_how_long_the_rest_takes() -> None:
    now = 0.0
    bar = Progress(get_time=lambda: now, speed_estimate_period=60)
    bar.add_task("", total=None, count="")
    lines = {}
    for now in range(100):  # the first half was done before, by a run that was stopped
        done = 1000 + 10 * now
        bar.update(bar.tasks[0].id, completed=done, total=2000, count=f"{done:,} of 2,000")
        bar.update(bar.tasks[0].id, description=f"unit {now}")
        lines[now] = progress.line_of(bar.tasks[0])
    assert lines[0] == "50 %, 1,000 of 2,000: unit 0"
    assert lines[20] == "60 %, 1,200 of 2,000, 80 s left: unit 20"
    assert progress._span(100.0) == "2 min"
    assert progress._span(7000.0) == "1.9 h"


def test_a_unit_that_takes_long_is_named_while_nothing_else_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, lines = threading.Event(), []

    def echo(line: str, err: bool) -> None:
        lines.append((line, err))
        if len(lines) > 1:
            told.set()

    monkeypatch.setattr(progress.typer, "echo", echo)
    monkeypatch.setattr(progress, "_SECONDS", 0.01)
    with progress.shown("sweeping", millions=True) as (show, _):
        show(0, 10_000_000, "long")
        told.wait()
    assert lines[:2] == [("0 %, 0.0 M of 10.0 M: long", True)] * 2


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
