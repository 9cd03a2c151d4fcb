"""Section 4: reductions of a million elements."""

from __future__ import annotations

import numpy as np

from facts.asked import Array, Fact, errors, ulps

ALL = ("torch", "paddle", "oneflow", "mindspore")
MILLION = 1_000_000
DRAWS = "one sum's error is a draw: the survey's inputs were not kept"
SINGLE = {
    "sum": ("54 / .1 / .05", "14 / .1 / .05", "22 / 1 / .05", ".01 / .1 / .05"),
    "mean": ("57 / .1 / .2", "44 / 5 / 17", "23 / .9 / .2", ".4 / .1 / .2"),
    "var": (".5 / .2 / .1", ".5 / .8 / .9", ".5 / .2 / .1", ""),
    "norm": ("168 / 87 / 12", "3750 / 1720 / 143", "3750 / 1720 / 143", ".1 / .2 / .2"),
    "logsumexp": (".3 / .2 / .4", ".3 / .2 / .4", ".3 / .2 / .4", "1.3 / .8 / .6"),
}
DOUBLE = {
    "sum": ("8 / 1 / 0", "", "", ""),
    "var": ("175 / 17 / 183", "0 / 0 / 0", "302 / 42 / 110", ""),
}
KINDS = ("randn", "uniform", "100 + 3 randn")


def million(kind: str, dtype: str) -> Array:
    rng = np.random.default_rng(41)
    x = rng.uniform(0, 1, MILLION) if kind == "uniform" else rng.standard_normal(MILLION)
    return (100 + 3 * x if kind == "100 + 3 randn" else x).astype(dtype)


def _facts() -> list[Fact]:
    made = []
    for dtype, table in (("float32", SINGLE), ("float64", DOUBLE)):
        for op, row in table.items():
            for framework, cells in zip(ALL, row, strict=True):
                for kind, cell in zip(KINDS, cells.split(" / "), strict=False):
                    if not cell:
                        continue
                    ask = errors(op, {"x": million(kind, dtype)}, {"axis": -1}, "y")
                    claim = f"{op} of 10^6 {kind}, {dtype}"
                    see = ulps(ask, float(cell))
                    made.append(Fact("4", framework, claim, f"{cell} ulp", see, DRAWS))
    return made


FACTS = _facts()
