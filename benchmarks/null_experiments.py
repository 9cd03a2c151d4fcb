"""How often do the tests of loss curves suspect a right run? Simulated at nominal levels.

    python benchmarks/null_experiments.py [--experiments 500] [--out FILE]

Each experiment draws K + 2 curves that differ in rounding only, and computes p as align does. Three
kinds of rounding: `walk`, which accumulates and grows; `grid`, the same below an ulp of the loss,
kept in float32, so that most losses have the same bits; `rare`, where one run in ten leaves the
others at some step. Printed: the share of experiments at or below each level, for a pair, and
for Student's p, which has no guarantee under `rare`.

Each kind is repeated with a pair that rounds `WIDER` times as much as the null runs. Their
deviations are then widened by the same factor, as in align. No theorem covers the p of such a pair,
or how often one of the pair is the farthest of all; these rates measure both.
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
    departed = (rng.random((NULLS + 2, 1)) < 0.1) * (np.arange(STEPS) >= rng.integers(STEPS))
    return BASE + 1e-6 * sizes * (rng.standard_normal((NULLS + 2, STEPS)) + 30.0 * departed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=500)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    for (number, kind), wider in itertools.product(enumerate(("walk", "grid", "rare")), WIDER):
        rng, p_values = np.random.default_rng(number), []
        for _ in range(arguments.experiments):
            runs = drawn(kind, rng, wider)
            pair = curves.of_pair(runs[0], runs[1], runs[2:], wider=wider)
            p_values.append((pair.p, pair.p_normal or 1.0, 1.0 - pair.extreme))
        p = np.array(p_values)
        setting = {"rounding": kind, "wider": wider}
        for at, test in enumerate(("pair", "student")):
            rates = {str(level): float(np.mean(p[:, at] <= level)) for level in LEVELS}
            rows.append({**setting, "test": test, "rates": rates})
        rate = float(np.mean(p[:, 2] == 0.0))
        rows.append({**setting, "test": "extreme", "rates": {str(2 / (NULLS + 2)): rate}})
    for row in rows:
        rates = ", ".join(f"{float(level):.3g}: {rate:.3f}" for level, rate in row["rates"].items())
        print(f"{row['rounding']:5} {row['wider']:3g} {row['test']:10} {rates}")
    if arguments.out:
        record = {
            "experiments": arguments.experiments,
            "nulls": NULLS,
            "steps": STEPS,
            "rows": rows,
        }
        write_whole(arguments.out, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
