"""The bar that says how far a command is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def progress_bar(*columns: Any, **options: Any) -> Iterator[Any]:
    """A bar of `rich` on standard error. Its first news starts it, not its making: a question that
    is refused gets one sentence and no bar."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(*columns, console=Console(stderr=True), **options)
    try:
        yield bar
    finally:
        if bar.live.is_started:
            bar.stop()
