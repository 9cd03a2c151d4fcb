"""The seeds: the published threads that this project began with, answered from the records.

They are: linear, where the frameworks' difference depends on the initialisation; LayerNorm of a row
of two close numbers, and its gradient, which is exactly zero; cos and sin at pi and along a cosine
schedule; the gradients of weight and bias, which must not be swapped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from refkernels.reporting.measure.comparisons import SeatPair
from refkernels.reporting.measure.scores import falling, largest
from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.words.report import listed

DTYPE = "float32"  # the threads' format
CHIEF = ("torch", "paddle")  # the pair that the linear thread compares


class SeedAnswer:
    """One subject's answer in one case and output; the element shown is its worst."""

    def __init__(self, m: Measurement) -> None:
        got, exact = ((m.worst.get(side) or {}).get("decimal") for side in ("got", "exact"))
        self.got, self.exact = str(got or ""), _short(str(exact or ""))
        self.ulp, self.dtype = m.number("ulp", "max"), m.dtype
        self.bound = m.number("bound", "max_ratio")
        # The largest absolute value where the exact answer is 0.
        nonzero = "nonzero_at_zero" in m.flags
        self.at_zero = m.number("error", "max_abs_at_zero") if nonzero else None
        self.rounded = m.rounded
        self.violated: list[str] = m.record.get("invariants_violated") or []


Rows = list[tuple[str, str, dict[str, SeedAnswer]]]
"""One thread's table: (case, output, an answer per subject)."""
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Seeds:
    """All threads that the records hold."""

    linear: dict[str, dict[Pair, SeatPair]]  # how far each pair is apart, by case
    layernorm: Rows
    pi: Rows
    gradients: Rows

    @property
    def pairs(self) -> list[Pair]:
        """All pairs, the thread's own first, then those that differ most in any case."""
        sizes: dict[Pair, list[float | None]] = defaultdict(list)
        for pairs in self.linear.values():
            for names, pair in pairs.items():
                sizes[names].append(pair.difference)
        return sorted(sizes, key=lambda names: (
            set(names) != set(CHIEF), -falling(largest(sizes[names])), names
        ))  # fmt: skip

    @property
    def apart(self) -> list[Pair]:
        """The pairs that differ in some linear case."""
        return [pair for pair in self.pairs if pair not in self.alike]

    @property
    def alike(self) -> list[Pair]:
        """The pairs whose bits are equal in all linear cases."""
        unequal = {
            names
            for pairs in self.linear.values()
            for names, pair in pairs.items()
            if pair.share < 1
        }
        return [names for names in self.pairs if names not in unequal]

    def __bool__(self) -> bool:
        return bool(self.linear or self.layernorm or self.pi or self.gradients)


def seeds(study: Study) -> Seeds:
    """The threads' cases, in float32."""
    linear: dict[str, dict[Pair, SeatPair]] = defaultdict(dict)
    for record in study.agreements:
        case = str(record.get("case") or "")
        asked = record["direction"], record["dtype"]
        if case.startswith("linear/seed_") and asked == ("forward", DTYPE):
            a, b = sorted((record["a"], record["b"]))
            linear[case].setdefault((a, b), SeatPair()).add(record)
    return Seeds(
        linear=dict(sorted(linear.items())),
        layernorm=_table(study, "seed_layernorm", ("y", "dx")),
        pi=_table(study, "seed_pi", ("y",), ("cos", "sin"))
        + _table(study, "cosine_schedule", ("y",), ("cos",)),
        gradients=_table(study, "affine_gradients", ("dweight", "dbias")),
    )


def chief_pairs(threads: Seeds) -> list[tuple[str, SeatPair]]:
    """(case, torch against paddle) of each linear case that has both."""
    compared = ((case, *item) for case, pairs in threads.linear.items() for item in pairs.items())
    return [(case, pair) for case, names, pair in compared if set(names) == set(CHIEF)]


def sentences(threads: Seeds, words: Mapping[str, str]) -> list[str]:
    """The answers to the threads in words, each only if the records bear it out."""
    lines = []
    pairs = chief_pairs(threads)
    zero_bias = [pair for case, pair in pairs if "bias=zero" in case]
    biased = [pair for case, pair in pairs if "bias=" in case and "bias=zero" not in case]
    equal_without_bias = bool(zero_bias) and all(pair.difference == 0 for pair in zero_bias)
    if equal_without_bias and biased and all(pair.difference for pair in biased):
        lines.append(words["seed:said_linear"])
    nonzero = sorted(
        name
        for _, output, answers in threads.layernorm
        for name, answer in answers.items()
        if output == "dx" and answer.at_zero
    )
    if nonzero:
        subjects = listed(words, list(dict.fromkeys(nonzero)))
        lines.append(words["seed:said_layernorm"].format(who=subjects))
    answers = [answer for _, _, row in threads.pi for answer in row.values()]
    if answers and not any(answer.violated for answer in answers):
        lines.append(words["seed:said_pi"])
    return lines


def _table(study: Study, regime: str, outputs: Iterable[str], ops: tuple[str, ...] = ()) -> Rows:
    rows: dict[tuple[str, str], dict[str, list[Measurement]]] = defaultdict(
        lambda: defaultdict(list)
    )
    names = tuple(outputs)
    for m in study.measurements:
        fits = m.regime == regime and m.dtype == DTYPE and m.output in names
        if fits and (not ops or (m.op in ops and m.direction == "forward")):
            rows[m.case, m.output][m.subject].append(m)
    order = sorted(rows, key=lambda key: (_easy(key[0]), key[0], names.index(key[1])))
    return [
        (*place, {name: SeedAnswer(measured[0]) for name, measured in rows[place].items()})
        for place in order
    ]


def _easy(case: str) -> tuple[bool, bool]:
    """Sort key: the thread's own case (no affine parameters, eps 1e-5) before its variants."""
    return "affine=yes" in case, "eps=0.1" in case


def _short(decimal: str) -> str:
    """Ten significant digits of an exact answer, in plain notation where it is short."""
    try:
        return f"{float(decimal):.10g}"
    except ValueError:
        return decimal
