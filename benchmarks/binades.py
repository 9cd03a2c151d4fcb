"""What a float32 answer costs in a sweep, binade by binade: every function that has a float64 tier,
inputs of both signs, and three kernels that answer.

    python benchmarks/binades.py [OP...]    prints the table, and writes it where all ops were run

right     the correctly rounded answers
library   the plain algorithm in float32
unsigned  the right answers, with +0 in the place of -0

The cost is processor time, the shorter of two passes over the same inputs. The bars: no binade
above 100 ns an element, and no function above 4 times sin in all.
"""

import sys
import time
from pathlib import Path

import numpy as np

from refkernels import registry
from refkernels.arithmetic import small
from refkernels.arithmetic.formats import BINARY32
from refkernels.op import Op
from refkernels.runs.sweeps import chunk
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import SweepTally

ELEMENTS, PASSES = 1 << 16, 2
MOST, TIMES_SIN = 100.0, 4.0
KERNELS = ("right", "library", "unsigned")
RESULT = Path(__file__).parent / "results" / "cpu-x86_64-linux" / "binades.md"


def answers(op: Op, x: np.ndarray, kernel: str) -> np.ndarray:
    if kernel == "library":
        got = op.plain("forward", {"x": x}, {}, BINARY32)[op.outputs[0]]
        return np.asarray(got, np.float32)
    hi = np.empty(x.size)
    op.fast.kernel(x, hi)
    return hi.astype(np.float32) + np.float32(0.0 if kernel == "unsigned" else -0.0)


def cost(op: Op, first: int, kernel: str) -> float:
    """Nanoseconds an element of the patterns from `first` on."""
    x = np.arange(first, first + ELEMENTS, dtype=np.uint32).view(np.float32)
    got, seconds = answers(op, x, kernel), []
    for _ in range(PASSES):
        tally, begin = SweepTally(BINARY32), time.process_time()
        chunk.judge_call(op, Span(first, first + ELEMENTS), got, tally)
        seconds.append(time.process_time() - begin)
    return min(seconds) / ELEMENTS * 1e9


def row(op: Op, kernel: str) -> tuple[float, float, str, int]:
    """Mean and largest cost, where the largest is, and how many binades are above the bar."""
    random = np.random.default_rng(0)
    costs = {}
    for binade in range(512):
        place = 0 if binade % 256 == 255 else int(random.integers((1 << 23) - ELEMENTS))
        sign, exponent = "-" if binade > 255 else "", max(binade % 256, 1) - 127
        costs[f"{sign}2^{exponent}" if binade % 256 else f"{sign}0"] = cost(
            op, (binade << 23) + place, kernel
        )
    worst = max(costs, key=lambda name: costs[name])
    above = sum(value > MOST for value in costs.values())
    return sum(costs.values()) / len(costs), costs[worst], worst, above


def main(names: list[str]) -> None:
    small.allowance.elements = 0  # a sweep is too long for NumPy's twins to matter
    ops = [op for op in registry.ops().values() if op.fast and (not names or op.name in names)]
    ops.sort(key=lambda op: op.name != "sin")
    sin: dict[str, float] = {}
    lines = [
        "| function | kernel | mean, ns | times sin | worst binade, ns | where | above 100 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines))
    with np.errstate(all="ignore"):
        for op in ops:
            for kernel in KERNELS:
                cost(op, 1 << 23, kernel)  # compiles what it needs
                mean, most, where, above = row(op, kernel)
                times = mean / sin.setdefault(kernel, mean)
                bold = "**" if times > TIMES_SIN else ""
                cells = f"{mean:.1f} | {bold}{times:.1f}{bold} | {most:.0f} | {where} | {above}"
                lines.append(f"| {op.name} | {kernel} | {cells} |")
                print(lines[-1], flush=True)
    if not names:
        RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
