"""Waiting for events. No test depends on a clock: a busy machine may take as long as it likes."""

import time
from collections.abc import Callable

HANGS = 600.0
"""Seconds after which what has not ended never will: it only ends a test that would hang."""


def until(event: Callable[[], object]) -> None:
    """Returns when the event has happened."""
    end = time.monotonic() + HANGS
    while not event():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)
