"""What a run of the tests leaves to `make all-tests`."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hunting
import pytest


def test_every_test_that_a_run_asks_in_part_is_there() -> None:
    for name in hunting.shares():
        file, _, test = name.partition("::")
        text = (Path(__file__).parent.parent / file).read_text("utf-8")
        assert file.endswith(f"/{test}") or re.search(rf"^def {test}\(", text, re.M), name


def test_a_run_asks_one_row_in_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunting, "shares", lambda: {"a": 3, "b": 0})
    names = [*(f"a[{k}]" for k in range(7)), "c", "b[0]", "c[1]", "b"]
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    left = [item.nodeid for item in hunting.left_out(items)]
    assert sum(name.startswith("a") for name in left) in (4, 5)
    assert left[-2:] == ["b[0]", "b"]
