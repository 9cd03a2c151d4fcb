"""How long the first answers take in a new process: with an empty kernel cache, and a full one.

Every run is a process of its own: the first with an empty cache folder (cold), the second with the
cache of the first (warm). The times are medians of the rounds' processor times (`speed.py`).
"""

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from stopwatch import Row, Work, race

ARRAYS = """
import numpy as np
x = np.random.default_rng(0).normal(1e3, 1.0, (32, 768)).astype(np.float32)
d = x - x.mean(-1, keepdims=True)
y = d / np.sqrt((d * d).mean(-1, keepdims=True) + np.float32(1e-5))
"""

FIRST_ANSWERS = {  # a newcomer's first questions
    "layernorm_ref.forward": """
from refkernels import layernorm_ref
layernorm_ref.forward(x, eps=1e-5)
""",
    "assert_kernel": """
from refkernels.testing import assert_kernel
assert_kernel("layernorm", {"x": x}, {"y": y}, {"eps": 1e-5})
""",
    "explain": """
import refkernels
refkernels.explain("layernorm", {"x": x}, {"y": y}, {"eps": 1e-5})
""",
}

COUNT = """
from refkernels.arithmetic import waiting
print(waiting.watch.compiled)
"""


def run(program: str, cache: Path) -> tuple[float, float, str]:
    """Processor and wall seconds of a new process, and what it printed."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    before, start = os.times(), time.perf_counter()
    completed = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system, wall, completed.stdout


def measured(name: str, rounds: int) -> dict[str, Any]:
    """Medians of (processor, wall) seconds, cold and warm, and how many kernels were compiled."""
    program = ARRAYS + FIRST_ANSWERS[name] + COUNT
    times: dict[str, list[tuple[float, float]]] = {"cold": [], "warm": []}
    compiled = 0
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for state, pairs in times.items():
                processor, wall, printed = run(program, Path(folder))
                pairs.append((processor, wall))
                compiled = int(printed) if state == "cold" else compiled
    medians = {
        state: tuple(map(statistics.median, zip(*pairs, strict=True)))
        for state, pairs in times.items()
    }
    return {**medians, "compiled": compiled}


def keep_bytecode() -> None:
    """Compile the package's modules, as pip does, and let later processes keep theirs too: without
    it a process compiles every module that it imports."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(Path(__file__).parent.parent / "refkernels", quiet=2)


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
    for name in FIRST_ANSWERS:
        times = measured(name, rounds)
        for state, bar in (("cold", 5.0), ("warm", 1.5)):
            processor, wall = times[state]
            work = f"first answer, {state}: {name}"
            compiled = f"; {times['compiled']} kernels compiled" if state == "cold" else ""
            about: dict[str, Any] = {"note": f"processor time; wall {wall:.2f} s{compiled}"}
            about |= {"seconds": [processor], "bar": bar, "unit": "s"}
            yield Row("startup", work, "32 x 768", "refkernels", 1, **about)
