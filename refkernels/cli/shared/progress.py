"""The bar that shows a command's progress, and the lines of a log that is not a terminal."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def progress_bar(*columns: Any, **options: Any) -> Iterator[Any]:
    """A bar of `rich` on standard error. Its first update starts it, so that a refused question
    gets one sentence and no bar."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(*columns, console=Console(stderr=True), **options)
    try:
        yield bar
    finally:
        if bar.live.is_started:
            bar.stop()


class Log:
    """The lines of a log where no bar can be drawn: one every 10 % or 20 s, with the work in hand
    and about how long the rest takes. `with Log(...)` also writes during a long unit.

    counted     formats a number of units
    """

    SHARE, SECONDS = 0.1, 20.0
    KNOWN = 0.05  # the share of the work after which the time left is told: the first units, for
    # which interpreters start and kernels compile, say nothing of it

    def __init__(
        self,
        write: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        counted: Callable[[int], str] = "{:,}".format,
    ) -> None:
        self._write, self._clock, self._counted = write, clock, counted
        self._last = clock()
        self._reported = 0.0
        self._begin: tuple[float, int] | None = None  # a resumed run begins with what it has
        self._state = (0, 0, "")
        self._lock, self._ended = threading.Lock(), threading.Event()

    def __enter__(self) -> Log:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def show(self, done: int, total: int, what: str) -> None:
        """Take the state of the work; write a line if one is due."""
        with self._lock:
            if self._begin is None:
                self._begin = (self._clock(), done)
                self._reported = done / max(1, total)
            self._state = (done, total, what)
        self.beat()

    def beat(self) -> None:
        """Write a line if one is due."""
        with self._lock:
            done, total, what = self._state
            now, share = self._clock(), done / max(1, total)
            if share - self._reported < self.SHARE and now - self._last < self.SECONDS:
                return
            what = f": {what}" if what else ""
            of = f"{self._counted(done)} of {self._counted(total)}"
            self._write(f"{100.0 * share:.0f} %, {of}{self._left(now)}{what}")
            self._last, self._reported = now, share

    def _left(self, now: float) -> str:
        done, total, _ = self._state
        began, had = self._begin or (now, done)
        if done == total or done - had < self.KNOWN * (total - had):
            return ""
        return f", {_span((now - began) / (done - had) * (total - done))} left"

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self.beat()


def _span(seconds: float) -> str:
    """`40 s`, `3 min`, `1.5 h`."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


@contextlib.contextmanager
def log_of(bar: Any, counted: Callable[[int], str] = "{:,}".format) -> Iterator[Log | None]:
    """A log on standard error where this is not a terminal, so that no bar is drawn; else None."""
    if bar.console.is_terminal:
        yield None
        return
    import typer

    with Log(lambda line: typer.echo(line, err=True), counted=counted) as log:
        yield log
