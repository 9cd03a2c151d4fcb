"""The bar that shows a command's progress, and the lines of a log that is no terminal."""

from __future__ import annotations

import contextlib
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
    """What a log gets where no bar can be drawn: a line every 10 % or 20 s, with what is being done
    and about how long the rest takes."""

    SHARE, SECONDS = 0.1, 20.0

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock
        self._start = self._last = clock()
        self._told = 0.0

    def show(self, done: int, total: int, what: str) -> None:
        """A line if it is time for one."""
        now, share = self._clock(), done / max(1, total)
        if share - self._told < self.SHARE and now - self._last < self.SECONDS:
            return
        left = f", {_span((now - self._start) * (1.0 / share - 1.0))} left" if share else ""
        what = f": {what}" if what else ""
        self._write(f"{100.0 * share:.0f} %, {done:,} of {total:,}{left}{what}")
        self._last, self._told = now, share


def _span(seconds: float) -> str:
    """`40 s`, `3 min`."""
    return f"{seconds:.0f} s" if seconds < 90.0 else f"{seconds / 60.0:.0f} min"
