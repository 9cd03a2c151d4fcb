"""The bar that shows a command's progress."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
