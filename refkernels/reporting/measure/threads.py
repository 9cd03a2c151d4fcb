"""The published threads that this project began with, answered from the records.

They are: linear, where the frameworks' difference depends on the initialisation; LayerNorm of a row
of two close numbers, and its gradient, which is exactly zero; cos and sin at pi and along a cosine
schedule; the gradients of weight and bias, which must not be swapped.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from refkernels.reporting.measure.comparisons import TargetPair
from refkernels.reporting.measure.scores import falling
from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.report import listed

DTYPE = "float32"  # the threads' format
CHIEF = {"torch", "paddle"}  # the pair that the linear thread compares
_THREADS = (  # the table, the regime, its ops (none: all) in the forward pass, the outputs
    ("thread:layernorm", "seed_layernorm", (), ("y", "dx")),
    ("thread:pi", "seed_pi", ("cos", "sin"), ("y",)),
    ("thread:pi", "cosine_schedule", ("cos",), ("y",)),
    ("thread:gradients", "affine_gradients", (), ("dweight", "dbias")),
)

Pair = tuple[str, str]
Rows = list[tuple[str, str, dict[str, Measurement]]]
"""One thread's table: (case, output, a measurement per subject)."""


@dataclass(frozen=True, eq=False)
class Threads:
    """All threads that the records hold."""

    linear: dict[str, dict[Pair, TargetPair]]  # how far each pair is apart, by case
    tables: dict[str, Rows]  # of the other threads
    apart: list[Pair]  # the pairs that differ in some linear case, the thread's own first
    alike: list[Pair]  # those whose bits are equal in all

    def __bool__(self) -> bool:
        return bool(self.linear or any(self.tables.values()))


def threads_of(study: Study) -> Threads:
    """The threads' cases, in float32."""
    linear: dict[str, dict[Pair, TargetPair]] = defaultdict(dict)
    every: dict[Pair, TargetPair] = {}
    for record in study.agreements:
        case = str(record.get("case") or "")
        asked = record["direction"], record["dtype"]
        if case.startswith("linear/seed_") and asked == ("forward", DTYPE):
            a, b = sorted((record["a"], record["b"]))
            for pairs in (linear[case], every):
                pairs.setdefault((a, b), TargetPair()).add(record)
    order = sorted(every, key=lambda names: (
        set(names) != CHIEF, -falling(every[names].difference), names
    ))  # fmt: skip
    unequal = {n for pairs in linear.values() for n, pair in pairs.items() if pair.share < 1}
    tables: dict[str, Rows] = defaultdict(list)
    for name, regime, ops, outputs in _THREADS:
        tables[name] += _rows(study, regime, ops, outputs)
    return Threads(
        dict(sorted(linear.items())), tables,
        [names for names in order if names in unequal],
        [names for names in order if names not in unequal],
    )  # fmt: skip


def _rows(study: Study, regime: str, ops: tuple[str, ...], outputs: tuple[str, ...]) -> Rows:
    rows: dict[tuple[str, str], dict[str, Measurement]] = defaultdict(dict)
    for m in study.measurements:
        fits = m.regime == regime and m.dtype == DTYPE and m.output in outputs
        if fits and (not ops or (m.op in ops and m.direction == "forward")):
            rows[m.case, m.output].setdefault(m.subject, m)

    def plain_first(place: tuple[str, str]) -> tuple[object, ...]:
        case, output = place
        return "affine=yes" in case, "eps=0.1" in case, case, outputs.index(output)

    return [(*place, rows[place]) for place in sorted(rows, key=plain_first)]


def sentences(threads: Threads, words: Texts) -> list[str]:
    """The answers to the threads in words, each only if the records bear it out."""
    lines = []
    apart: dict[bool, list[float | None]] = defaultdict(list)  # by whether the bias is 0
    for case, pairs in threads.linear.items():
        if "bias=" in case:
            chief = (pair.difference for names, pair in pairs.items() if set(names) == CHIEF)
            apart["bias=zero" in case] += chief
    if apart[True] and apart[False] and all(apart[False]) and not any(apart[True]):
        lines.append(words["thread:said_linear"])
    gradients = [row for _, output, row in threads.tables["thread:layernorm"] if output == "dx"]
    if nonzero := {name for row in gradients for name, m in row.items() if m.at_zero}:
        lines.append(words("thread:said_layernorm", who=listed(words, sorted(nonzero))))
    shown = [m for _, _, row in threads.tables["thread:pi"] for m in row.values()]
    if shown and not any(m.record.get("invariants_violated") for m in shown):
        lines.append(words["thread:said_pi"])
    return lines
