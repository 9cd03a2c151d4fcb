"""The seeds: the published threads that this project began with, answered from the records.

They are: linear, where the frameworks' difference depends on the initialisation; LayerNorm of a row
of two close numbers, and its gradient, which is exactly zero; cos and sin at pi and along a cosine
schedule; the gradients of weight and bias, which must not be swapped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from refkernels.reporting.measure.comparisons import SeatPair, SeedCase, pairs_of, seed_cases
from refkernels.reporting.measure.scores import largest
from refkernels.reporting.measure.study import Measurement, Study, as_number
from refkernels.reporting.words.report import listed

DTYPE = "float32"  # the threads' format
CHIEF = ("torch", "paddle")  # the pair that the linear thread compares


@dataclass(frozen=True, eq=False)
class SeedAnswer:
    """One subject's answer in one case and output; the element shown is its worst."""

    got: str
    exact: str
    ulp: float | None
    dtype: str
    bound: float | None
    at_zero: float | None  # the largest absolute value where the exact answer is 0
    rounded: tuple[int, int]  # how many results are correctly rounded, of how many
    violated: tuple[str, ...]


Rows = list[tuple[str, str, dict[str, SeedAnswer]]]
"""One thread's table: (case, output, an answer per subject)."""


@dataclass(frozen=True, eq=False)
class Seeds:
    """All threads that the records hold."""

    linear: list[SeedCase]
    pairs: list[tuple[str, str]]
    layernorm: Rows
    pi: Rows
    gradients: Rows

    @property
    def apart(self) -> list[tuple[str, str]]:
        """The pairs that differ in some linear case."""
        return [pair for pair in self.pairs if pair not in self.alike]

    @property
    def alike(self) -> list[tuple[str, str]]:
        """The pairs whose bits are equal in all linear cases."""
        identical = []
        for pair in self.pairs:
            compared = [case.pairs[pair] for case in self.linear if pair in case.pairs]
            if all(case.elements and case.equal == case.elements for case in compared):
                identical.append(pair)
        return identical

    def __bool__(self) -> bool:
        return bool(self.linear or self.layernorm or self.pi or self.gradients)


def seeds(study: Study) -> Seeds:
    """The threads' cases, in float32."""
    linear = [case for case in seed_cases(study) if case.dtype == DTYPE] or seed_cases(study)
    pairs = pairs_of(linear)
    pairs.sort(key=lambda pair: set(pair) != set(CHIEF))
    return Seeds(
        linear=linear,
        pairs=pairs,
        layernorm=_table(study, "seed_layernorm", ("y", "dx")),
        pi=_table(study, "seed_pi", ("y",), ("cos", "sin"))
        + _table(study, "cosine_schedule", ("y",), ("cos",)),
        gradients=_table(study, "affine_gradients", ("dweight", "dbias")),
    )


def chief_pairs(threads: Seeds) -> list[tuple[str, SeatPair]]:
    """(case, torch against paddle) of each linear case that has both."""
    pairs = []
    for seed in threads.linear:
        pair = next((p for names, p in seed.pairs.items() if set(names) == set(CHIEF)), None)
        if pair is not None:
            pairs.append((seed.case, pair))
    return pairs


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
        (*place, {name: _answer(measured[0]) for name, measured in rows[place].items()})
        for place in order
    ]


def _easy(case: str) -> tuple[bool, bool]:
    """Sort key: the thread's own case (no affine parameters, eps 1e-5) before its variants."""
    return "affine=yes" in case, "eps=0.1" in case


def _answer(m: Measurement) -> SeedAnswer:
    got, exact = m.worst.get("got") or {}, m.worst.get("exact") or {}
    violated = m.record.get("invariants_violated")
    at_zero = m.number("error", "max_abs_at_zero") if "nonzero_at_zero" in m.flags else None
    return SeedAnswer(
        got=str(got.get("decimal") or ""),
        exact=_short(str(exact.get("decimal") or "")),
        ulp=largest([m.number("ulp", "max")]),
        dtype=m.dtype,
        bound=as_number((m.record.get("bound") or {}).get("max_ratio")),
        at_zero=at_zero,
        rounded=m.rounded,
        violated=tuple(str(name) for name in violated) if isinstance(violated, list) else (),
    )


def _short(decimal: str) -> str:
    """Ten significant digits of an exact answer, in plain notation where it is short."""
    try:
        return f"{float(decimal):.10g}"
    except ValueError:
        return decimal
