"""Start-up: import, help, and the first answers of a new process."""

import subprocess
import sys
import time
from collections.abc import Iterator

import cold_start
from stopwatch import Row, Work, race


def startup(seconds: float) -> Iterator[Row]:
    """Import and help, in a new process whose cache is warm."""
    python = [sys.executable, "-c"]
    rows: dict[str, tuple[Row, Work]] = {}

    def process(command: list[str]) -> Work:
        def run() -> float:
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            return time.perf_counter() - began

        return run

    def itself(code: str) -> Work:
        def run() -> float:
            completed = subprocess.run([*python, code], check=True, capture_output=True, text=True)
            return float(completed.stdout)

        return run

    imported = (
        "import time; t = time.perf_counter(); import refkernels; print(time.perf_counter() - t)"
    )
    help_command = [sys.executable, "-m", "refkernels", "--help"]
    for work, run, bar in (
        ("import refkernels", itself(imported), 0.1),
        ("refkernels --help", process(help_command), 0.4),
        ("python itself", process([*python, "pass"]), None),
    ):
        rows[work] = Row("startup", work, "", "refkernels", 1, bar=bar, unit="s"), run
    rows["python itself"][0].who = "Python"
    race(rows, seconds, rounds=7)
    yield from (entry for entry, _ in rows.values())


def first_answers(rounds: int) -> Iterator[Row]:
    """The first answers in a new process, with an empty kernel cache and with a full one, in
    processor time: a busy machine does not change it."""
    for name in cold_start.FIRST_ANSWERS:
        times = cold_start.measured(name, rounds)
        for state, bar in (("cold", 5.0), ("warm", 1.5)):
            processor, wall = times[state]
            work = f"first answer, {state}: {name}"
            entry = Row(
                "startup", work, "32 x 768", "refkernels", 1, [processor], bar=bar, unit="s"
            )
            entry.note = f"processor time; wall {wall:.2f} s"
            if state == "cold":
                entry.note += f"; {times['compiled']} kernels compiled"
            yield entry
