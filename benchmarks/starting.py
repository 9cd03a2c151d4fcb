"""Start-up: import, help, and the first answers of a new process."""

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import cold_start
from stopwatch import Row, Work, race


def startup(seconds: float) -> Iterator[Row]:
    """Import and help, in a new process whose cache is warm."""
    imported = (
        "import time; t = time.perf_counter(); import refkernels; print(time.perf_counter() - t)"
    )
    rows: dict[str, tuple[Row, Work]] = {}
    for work, words, bar in (
        ("import refkernels", ["-c", imported], 0.1),
        ("refkernels --help", ["-m", "refkernels", "--help"], 0.4),
        ("python itself", ["-c", "pass"], None),
    ):
        run = partial(_process, [sys.executable, *words], times_itself=imported in words)
        rows[work] = Row("startup", work, "", "refkernels", 1, bar=bar, unit="s"), run
    rows["python itself"][0].who = "Python"
    race(rows, seconds, rounds=7)
    yield from (entry for entry, _ in rows.values())


def _process(command: list[str], times_itself: bool) -> float:
    began = time.perf_counter()
    completed = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(completed.stdout) if times_itself else time.perf_counter() - began


def first_answers(rounds: int) -> Iterator[Row]:
    """The first answers in a new process, with an empty kernel cache and with a full one, in
    processor time: a busy machine does not change it."""
    for name in cold_start.FIRST_ANSWERS:
        times = cold_start.measured(name, rounds)
        for state, bar in (("cold", 5.0), ("warm", 1.5)):
            processor, wall = times[state]
            work = f"first answer, {state}: {name}"
            compiled = f"; {times['compiled']} kernels compiled" if state == "cold" else ""
            about: dict[str, Any] = {"note": f"processor time; wall {wall:.2f} s{compiled}"}
            about |= {"seconds": [processor], "bar": bar, "unit": "s"}
            yield Row("startup", work, "32 x 768", "refkernels", 1, **about)
