"""Start-up: import, help, and the first answers of a new process."""

import subprocess
import sys
import time
from collections.abc import Iterator

import cold_start
from stopwatch import Row, Work, race

FIRST_CALLS = {
    "matmul, 0.01 ulp": "matmul_ref as m; run = lambda: m.forward(a, a, certify=('ulp', f, 0.01))",
    "matmul, rounding": "matmul_ref as m; run = lambda: m.forward(a, a, certify=('rounding', f))",
    "matmul, float64": "matmul_ref as m; run = lambda: m.forward(a + 0.0 * d, a + 0.0 * d)",
    "layernorm": "layernorm_ref as m; run = lambda: m.forward(a)",
    "layernorm backward": "layernorm_ref as m; run = lambda: m.backward(a, a)",
    **{op: f"trig_ref as m; run = lambda: m.{op}(a)" for op in ("sin", "tan", "asin", "sinpi")},
    **{op: f"elementary_ref as m; run = lambda: m.{op}(a)"
       for op in ("exp", "log", "tanh", "erf", "gelu", "sigmoid")},
    "exp backward": "elementary_ref as m; run = lambda: m.backward('exp', a, a)",
    "ULP statistics": "metrology as m; run = lambda: m.summarise(a, m.summary.Enclosure(d))",
}  # fmt: skip
_FIRST = """
import time, numpy as np
a = np.random.default_rng(1).uniform(0.1, 0.9, (300, 300)).astype(np.float32)
d, f = a.astype(np.float64), "float32"
import refkernels.metrology.summary
from refkernels import {code}
began = time.perf_counter(); run(); print(time.perf_counter() - began)
"""


def startup(seconds: float) -> Iterator[Row]:
    """Import, help, and the first call of kernels in a new process whose cache is warm."""
    python = [sys.executable, "-c"]
    rows: dict[str, tuple[Row, Work]] = {}

    def process(command: list[str], less: float = 0.0) -> Work:
        def run() -> float:
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            return max(time.perf_counter() - began - less, 0.0)

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
    first = {
        work: (
            Row("startup", f"first call: {work}", "300 x 300", "refkernels", 1, bar=1.0, unit="s"),
            itself(_FIRST.format(code=code)),
        )
        for work, code in FIRST_CALLS.items()
    }
    for entry, run in first.values():
        entry.seconds = _twice_if_slow(entry, run)
    yield from (entry for entry, _ in (rows | first).values())


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


def _twice_if_slow(row: Row, run: Work) -> list[float]:
    """Seconds of a call with a warm cache: a slow call has filled the cache, and is repeated."""
    try:
        taken = run()
        if taken is not None and taken > 0.5:
            taken = run()
        return [] if taken is None else [taken]
    except subprocess.CalledProcessError as error:
        row.missing = (error.stderr.strip().splitlines() or [str(error)])[-1][:160]
        return []
