"""The benchmark runs from end to end on tiny sizes, and its arithmetic is right."""

import json
import math
import subprocess
import sys
from pathlib import Path

import stopwatch
import tables
from stopwatch import Row, race

BENCHMARKS = Path(stopwatch.__file__).parent


def test_contestants_take_turns_and_ratios_are_per_element_within_a_round() -> None:
    turns: list[str] = []
    times = {"a": [9.0, 2.0, 4.0, 8.0], "b": [9.0, 1.0, 1.0, 1.0]}

    def work(name: str) -> stopwatch.Work:
        def run() -> float:
            turns.append(name)
            return times[name].pop(0)

        return run

    rows = {"a": Row("s", "w", "", "a", 10, base="b"), "b": Row("s", "w", "", "b", 5, base="b")}
    race({name: (row, work(name)) for name, row in rows.items()}, 1e9, rounds=3)
    assert turns == ["a", "b"] * 4  # the first turn of each warms up
    assert rows["a"].seconds == [2.0, 4.0, 8.0]
    assert rows["a"].ratios == [1.0, 2.0, 4.0]
    assert (rows["a"].figure, rows["a"].met) == (2.0, None)
    rows["a"].bar = 2.5
    assert rows["a"].met


def test_a_contestant_that_raises_is_named_and_the_others_go_on() -> None:
    def fail() -> float:
        raise RuntimeError("not installed: pip install it")

    rows = {
        "a": Row("matmul", "w", "", "a", 1, base="b", bar=1.0),
        "b": Row("matmul", "w", "", "b", 1),
    }
    race({"a": (rows["a"], fail), "b": (rows["b"], lambda: 1.0)}, 1.0, rounds=2)
    assert rows["a"].met is None
    assert rows["b"].seconds == [1.0, 1.0]
    assert "pip install it" in tables.bars(list(rows.values()))


def test_throughputs_are_held_to_a_least_ratio() -> None:
    ours = Row("s", "w", "", "a", 4, base="b", bar=2.0, at_least=True)
    theirs = Row("s", "w", "", "b", 4)
    race({"a": (ours, lambda: 1.0), "b": (theirs, lambda: 3.0)}, 1e9, rounds=3)
    assert ours.figure == 3.0
    assert ours.met
    ours.bar = 4.0
    assert not ours.met
    assert "MISSED" in tables.bars([ours])


def test_quartiles_are_those_of_the_sorted_values() -> None:
    assert stopwatch.quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == [2.0, 4.0]
    assert stopwatch.quartiles([1.0]) is None


def test_every_section_runs_and_both_files_are_whole(tmp_path: Path) -> None:
    """Without starting up, whose first calls would compile all kernels on a machine with none."""
    command = [sys.executable, str(BENCHMARKS / "speed.py"), "--quick", "--out", str(tmp_path)]
    done = subprocess.run([*command, "--without", "startup"], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    assert report["left_out"] == []
    assert {row["section"] for row in report["rows"]} == set(tables.TITLES) - {"startup"}
    ours = [row for row in report["rows"] if row["who"].startswith("refkernels")]
    assert len(ours) >= 20
    assert all(row["missing"] is None and row["median_s"] > 0 for row in ours)
    assert all(row["missing"] for row in report["rows"] if row["median_s"] is None)
    assert not any(math.isnan(row["ratio"] or 0.0) for row in report["rows"])
    assert "| elementwise: sin | torch float64 cos | 1 000: " in (tmp_path / "speed.md").read_text(
        "utf-8"
    )
