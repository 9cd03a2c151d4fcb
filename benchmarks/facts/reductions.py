"""Section 4: reductions of a million elements."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from facts.asked import Array, Fact, Seats, errors, failed, ulps
from refkernels import registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.metrology import summarise
from refkernels.truth import Truth

ALL = ("torch", "paddle", "oneflow", "mindspore")
MILLION = 1_000_000
DRAWS = "outside the range of our draws: the survey's inputs were not kept"
WITHDRAWN = "withdrawn: it is not accumulated in float64, as the survey supposes"
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
Ask = Callable[[Seats, Fact], float | str]


@functools.lru_cache(maxsize=2 * len(KINDS))  # the first draw of every kind
def million(kind: str, dtype: str, draw: int = 0) -> Array:
    rng = np.random.default_rng(41 if draw == 0 else [41, draw])
    x = rng.uniform(0, 1, MILLION) if kind == "uniform" else rng.standard_normal(MILLION)
    numbers = (100 + 3 * x if kind == "100 + 3 randn" else x).astype(dtype)
    numbers.flags.writeable = False
    return numbers


def _facts() -> list[Fact]:
    made = []
    for dtype, table in (("float32", SINGLE), ("float64", DOUBLE)):
        for op, row in table.items():
            for framework, cells in zip(ALL, row, strict=True):
                for kind, cell in zip(KINDS, cells.split(" / "), strict=False):
                    if not cell:
                        continue
                    ask = functools.partial(_asked, op, kind, dtype)
                    claim = f"{op} of 10^6 {kind}, {dtype}"
                    see = ulps(ask(0), float(cell), ask)
                    because = WITHDRAWN if (framework, op) == ("mindspore", "norm") else DRAWS
                    made.append(Fact("4", framework, claim, f"{cell} ulp", see, because))
    return made


def _asked(op: str, kind: str, dtype: str, draw: int) -> Ask:
    """The error of an op on a draw."""

    def ask(seats: Seats, fact: Fact) -> float | str:
        x = million(kind, dtype, draw)
        return errors(op, {"x": x}, {"axis": -1}, "y")(seats, fact)

    return ask


def _clipped(kind: str, draw: int) -> Ask:
    """The error of the norm in clipping a draw."""

    def ask(seats: Seats, fact: Fact) -> float | str:
        grads = {"grads": million(kind, "float32", draw), "tensor": np.zeros(MILLION, np.int64)}
        return errors("clip_by_global_norm", grads, {"max_norm": 1.0}, "norm")(seats, fact)

    return ask


CLIPPED = [
    Fact("4", framework, f"gradient norm of 10^6 {kind} in clip_grad_norm_", f"{figure} ulp",
         ulps(_clipped(kind, 0), figure, functools.partial(_clipped, kind)),
         because)
    for framework, figures, because in (
        ("torch", (168, 87, 12), DRAWS),
        ("paddle", (3750, 1720, 143), DRAWS),
        ("oneflow", (3750, 1720, 143), DRAWS),
    )
    for kind, figure in zip(KINDS, figures, strict=True)
]  # fmt: skip


def _last(kind: str, draw: int) -> Ask:
    """The error of the last of a draw's cumulative sums, which is the sum of all."""

    def ask(seats: Seats, fact: Fact) -> float | str:
        x = million(kind, "float32", draw)
        reply = seats.run(fact, "cumsum", {"x": x}, {"axis": -1}, "forward")
        if not reply.ok:
            return failed(reply).ours
        last = reply.outputs["y"][-1:]
        truth = Truth(registry.get("sum"), "forward", {"x": x[None]}, {"axis": -1}, BINARY32)
        return summarise(last, truth.reference["y"], distribution=False).max

    return ask


LAST = [
    Fact("4", framework, f"last cumulative sum of 10^6 {kind}, float32", f"{cell} ulp",
         ulps(_last(kind, 0), float(cell), functools.partial(_last, kind)), DRAWS)
    for framework in ALL
    for kind, cell in zip(
        KINDS, (".01 / .1 / .05" if framework == "torch" else "100 / 257 / 166").split(" / "),
        strict=True,
    )
]  # fmt: skip
FACTS = [*_facts(), *CLIPPED, *LAST]
