"""How often do the tests of loss curves suspect a right run? Simulated, at their nominal levels.

    python benchmarks/null_experiments.py [--experiments 500] [--out FILE]

Each experiment draws K + 2 curves that differ in rounding only, and asks for p as align
does. Three kinds of rounding: `walk`, which accumulates and grows; `grid`, the same below an ulp of
the loss, kept in float32, so that most losses have the same bits; `rare`, where one run in ten
leaves the others at some step. Printed: the share of experiments at or below each level, for a pair
and against a reference, and for Student's p, which no rounding that is `rare` promises anything.

Each kind once more with a pair that rounds `WIDER` times as much as the null runs, whose deviations
are then taken as much wider, as align does: nothing proves its p, or how often one of two is the
farthest of all. These rates say how they do.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import numpy as np

from refkernels.alignment import curves
from refkernels.records.files import write_whole

LEVELS = (0.005, 0.01, 0.05, 0.1, 0.25)
NULLS, STEPS = 19, 60
WIDER = (1.0, 2.0, 4.0)
BASE = 6.0 * np.exp(-np.arange(STEPS) / 40.0)


def drawn(kind: str, rng: np.random.Generator, wider: float = 1.0) -> np.ndarray:
    """K + 2 curves; the first two have `wider` times the roundings of the others."""
    sizes = np.where(np.arange(NULLS + 2) < 2, wider, 1.0)[:, None]
    growing = sizes * np.cumsum(rng.standard_normal((NULLS + 2, STEPS)), axis=1)
    growing *= np.exp(np.arange(STEPS) / 30.0)
    if kind == "walk":
        return BASE + 1e-6 * growing
    if kind == "grid":
        return (BASE + 1e-8 * growing).astype(np.float32).astype(np.float64)
    left = (rng.random((NULLS + 2, 1)) < 0.1) * (np.arange(STEPS) >= rng.integers(STEPS))
    return BASE + 1e-6 * sizes * (rng.standard_normal((NULLS + 2, STEPS)) + 30.0 * left)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=500)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = []
    for (number, kind), wider in itertools.product(enumerate(("walk", "grid", "rare")), WIDER):
        rng, found = np.random.default_rng(number), []
        for _ in range(asked.experiments):
            runs = drawn(kind, rng, wider)
            pair = curves.of_pair(runs[0], runs[1], runs[2:], wider=wider)
            alone = curves.against_reference(runs[0], BASE, runs[2:])
            found.append((pair.p, alone.p, pair.p_normal or 1.0, 1.0 - pair.extreme))
        p = np.array(found)
        setting = {"rounding": kind, "wider": wider}
        for at, test in enumerate(("pair", "reference", "student")):
            if test == "reference" and wider > 1.0:
                continue  # which is of runs that round alike
            rates = {str(level): float(np.mean(p[:, at] <= level)) for level in LEVELS}
            rows.append({**setting, "test": test, "rates": rates})
        rate = float(np.mean(p[:, 3] == 0.0))
        rows.append({**setting, "test": "extreme", "rates": {str(2 / (NULLS + 2)): rate}})
    for row in rows:
        rates = ", ".join(f"{float(level):.3g}: {rate:.3f}" for level, rate in row["rates"].items())
        print(f"{row['rounding']:5} {row['wider']:3g} {row['test']:10} {rates}")
    if asked.out:
        record = {"experiments": asked.experiments, "nulls": NULLS, "steps": STEPS, "rows": rows}
        write_whole(asked.out, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
