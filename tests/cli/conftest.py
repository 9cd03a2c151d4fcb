"""The commands are tried without drawing their plots, which takes longer than the rest of a run."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from refkernels.cli.shared import pages


@pytest.fixture(autouse=True)
def undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what runs in this process. `tests/reporting` draws, the commands that are started as
    processes do too, and `test_pages_of_records` tries how they are drawn."""
    if request.path.stem == "test_pages_of_records":
        return

    def none(_: Callable[..., Any], jobs: Sequence[Any]) -> list[None]:
        return [None for _ in jobs]

    monkeypatch.setattr(pages, "starmap", none)
