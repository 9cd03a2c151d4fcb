"""One version against another: turns alternate, ratios are of pairs, slower work is reported."""

import itertools
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import against
import pytest
import workloads

ROOT = Path(against.__file__).parent.parent


class _Fake:
    """A version whose work takes the given times in turn."""

    def __init__(self, name: str, turns: list[str], times: list[float]) -> None:
        self.name, self.turns, self.times = name, turns, itertools.cycle(times)

    def run(self, work: str) -> dict[str, float]:
        self.turns.append(self.name)
        seconds = next(self.times)
        return {"processor": seconds, "wall": 2 * seconds, "calls": 1}


def _compared(old: list[float], new: list[float]) -> tuple[against.Comparison, list[str]]:
    turns: list[str] = []
    sides: list[Any] = [_Fake("old", turns, old), _Fake("new", turns, new)]
    return against.compare("work", *sides, pairs=4), turns


def test_turns_alternate_so_that_neither_version_is_always_first() -> None:
    comparison, turns = _compared([1.0], [1.0])
    assert turns[2:] == ["old", "new", "new", "old"] * 2
    assert not comparison.worse


def test_a_pair_of_runs_that_was_slowed_does_not_count_as_a_regression() -> None:
    comparison, _ = _compared([1.0, 1.0, 8.0, 1.0], [1.0, 1.0, 8.0, 1.0])
    assert comparison.ratios("processor") == [1.0] * 4
    assert not comparison.worse


def test_a_version_that_takes_longer_is_reported() -> None:
    comparison, _ = _compared([1.0, 1.0, 1.0, 1.0], [1.1, 1.1, 1.1, 5.0])
    assert comparison.worse
    assert "**1.10**" in against.table([comparison])


def test_work_that_an_old_version_cannot_do_is_reported() -> None:
    sides: list[Any] = [_Fake("old", [], [1.0]), _Fake("new", [], [1.0])]

    def fail(work: str) -> dict[str, float]:
        raise RuntimeError("no such op")

    sides[0].run = fail
    assert "missing: no such op" in against.table([against.compare("work", *sides, pairs=2)])


def test_every_name_makes_another_piece_of_work() -> None:
    pieces = workloads.workloads()
    assert len(pieces) > 30
    assert all(callable(make) for make in pieces.values())


def test_anything_but_a_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither a checkout nor a wheel"):
        against.side(tmp_path, tmp_path, "old")


def test_a_checkout_and_a_wheel_are_compared_from_end_to_end(tmp_path: Path) -> None:
    wheel = tmp_path / "refkernels-0.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("refkernels/__init__.py", "import time\ntime.sleep(0.0)\n")
    out = tmp_path / "times.json"
    command = [sys.executable, against.__file__, str(wheel), str(ROOT), "--pairs", "2"]
    command += ["--only", "import", "--cache", str(tmp_path / "cache"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    (record,) = json.loads(out.read_text("utf-8"))
    assert record["missing"] is None
    assert [len(record[side]) for side in ("old", "new")] == [2, 2]
    assert "| import refkernels |" in done.stdout
