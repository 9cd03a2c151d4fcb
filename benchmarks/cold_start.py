"""How long the first answers take in a new process: with an empty kernel cache, and a full one.

    python benchmarks/cold_start.py [--rounds 3] [NAME ...]

Every run is a process of its own: the first with an empty cache folder (cold), the second with the
cache of the first (warm). The median of the rounds' processor times is printed.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bytecode

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FIRST_ANSWERS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if unknown := set(options.names) - set(FIRST_ANSWERS):
        parser.error(f"there is no {unknown.pop()!r}: {', '.join(FIRST_ANSWERS)}")
    bytecode.keep()
    for name in options.names or FIRST_ANSWERS:
        times = measured(name, options.rounds)
        seconds = "; ".join(
            f"{state} {times[state][0]:.2f} s of processor time, {times[state][1]:.2f} s"
            for state in ("cold", "warm")
        )
        print(f"{name}: {seconds}; {times['compiled']} kernels", flush=True)


if __name__ == "__main__":
    main()
