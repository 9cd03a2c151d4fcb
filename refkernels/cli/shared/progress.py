"""A command's progress: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def progress_bar(*columns: Any, **options: Any) -> Iterator[Any]:
    """A `rich` bar on standard error. The caller starts it with the first update, so that a refused
    question gets one sentence and no bar."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(*columns, console=Console(stderr=True), **options)
    try:
        yield bar
    finally:
        if bar.live.is_started:
            bar.stop()


class Log:
    """Progress as log lines, where no bar can be drawn: one every 20 s, or after 10 % and 5 s, with
    the current unit and an estimate of the time left. Inside `with Log(...)`, lines also appear
    during a long unit, and say how long it has taken.

    counted     formats a number of units
    """

    SHARE, LEAST, SECONDS = 0.1, 5.0, 20.0
    KNOWN = 0.05  # the share of the work after which the time left is estimated: the first units,
    # for which interpreters start and kernels compile, do not predict the others

    def __init__(
        self,
        write: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        counted: Callable[[int], str] = "{:,}".format,
    ) -> None:
        self._write, self._clock, self._counted = write, clock, counted
        self._last = clock()
        self._reported = 0.0
        self._begin: tuple[float, int] | None = None  # time, and units that a resumed run has done
        self._state = (0, 0, "")
        self._since = clock()  # when the current unit began
        self._lock, self._ended = threading.Lock(), threading.Event()

    def __enter__(self) -> Log:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def show(self, done: int, total: int, unit: str) -> None:
        """Record the state of the work; write a line if one is due."""
        with self._lock:
            if self._begin is None:
                self._begin = (self._clock(), done)
                self._reported = done / max(1, total)
            if self._state != (done, total, unit):
                self._state, self._since = (done, total, unit), self._clock()
        self.beat()

    def beat(self) -> None:
        """Write a line if one is due."""
        with self._lock:
            done, total, unit = self._state
            now, share = self._clock(), done / max(1, total)
            soon = share - self._reported >= self.SHARE
            if not total or now - self._last < (self.LEAST if soon else self.SECONDS):
                return
            if unit and now - self._since >= self.SECONDS:
                unit += f", for {_span(now - self._since)}"
            unit = f": {unit}" if unit else ""
            counts = f"{self._counted(done)} of {self._counted(total)}"
            self._write(f"{100.0 * share:.0f} %, {counts}{self._left(now)}{unit}")
            self._last, self._reported = now, share

    def _left(self, now: float) -> str:
        done, total, _ = self._state
        began, done_before = self._begin or (now, done)
        done_here = done - done_before
        if done == total or done_here < self.KNOWN * (total - done_before):
            return ""
        return f", {_span((now - began) / done_here * (total - done))} left"

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self.beat()


def _span(seconds: float) -> str:
    """`40 s`, `3 min`, `1.5 h`."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


Show = Callable[[int, int, str], None]
"""Shows how much of the work is done, of how much, and the unit in progress."""


@contextlib.contextmanager
def shown(label: str, millions: bool = False) -> Iterator[tuple[Show, Any]]:
    """A `Show` and its console, standard error: a bar on a terminal, elsewhere a log. `millions`:
    the work is a number of inputs, and has a rate."""
    import typer
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), TextColumn("{task.fields[count]}"))
    unit_column = TextColumn("{task.description}", markup=False)
    with progress_bar(
        *columns, TimeRemainingColumn(), unit_column, speed_estimate_period=60
    ) as bar:
        task = bar.add_task("", total=None, count="")
        counted = (lambda n: f"{n / 1e6:,.1f} M") if millions else "{:,}".format

        def draw(done: int, total: int, unit: str) -> None:
            bar.start()
            speed = bar.tasks[0].speed
            rate = f"  {speed / 1e6:,.0f} M/s" if millions and speed else ""
            count = f"{counted(done)} of {counted(total)}{rate}"
            bar.update(task, completed=done, total=total, description=unit[:70], count=count)

        if bar.console.is_terminal:
            yield draw, bar.console
            return
        with Log(lambda line: typer.echo(line, err=True), counted=counted) as log:
            yield log.show, bar.console
