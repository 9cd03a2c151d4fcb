"""Functions of two inputs: pairs drawn where errors are likely, then a climb from the worst found.

There are 2^64 pairs of float32, so every format is searched, restart by restart, as `search` does
for one input. The largest error found is a lower bound. Pairs are drawn from the regimes of the
op's own cases, and moved; from all binades, with a partner of about the same magnitude (sometimes
equal); from special values, alone and beside any number; and uniformly from all patterns. The climb
then moves one input or both by ± 2^k patterns, from the worst pairs and from those whose answers
are next to overflow and to zero.

An answer that is 0, infinite or NaN shows little, and the oracle needs milliseconds for one that is
far beyond the format's range. Only the first few such answers of each call are judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.frameworks.gateway import Session
from refkernels.op import Op
from refkernels.runs.sweeps import judging, patterns
from refkernels.runs.sweeps.chunk import SweepQuestion, judge_any
from refkernels.runs.sweeps.search import Patterns, Scores, ask, error_of, searched, stratified
from refkernels.runs.sweeps.tally import Json, SweepTally

_CLIMBERS = 64  # the worst pairs, from which the climb goes on
_EDGES = 8  # pairs next to overflow, and as many next to zero, that climb too
_OUT_OF_RANGE = 64  # answers of one call that are judged although they are 0, infinite or NaN
_RANK = 32  # bits of a code that hold the pair's place in its batch

Pairs = Patterns  # (n, 2)


@dataclass
class Batch(SweepTally):
    """The tally of some pairs, by codes that fit into the kernels' integers: the binade of the
    first input, then the pair's place in `pairs`, which are sorted."""

    pairs: Pairs = field(default_factory=lambda: np.empty((0, 2), np.uint64))

    @property
    def shift(self) -> int:
        return _RANK

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """The codes of the pairs."""
        binades = (self.pairs[:, 0] >> np.uint64(self.format.p - 1)).astype(np.int64)
        return (binades << _RANK) | np.arange(len(self.pairs), dtype=np.int64)

    def inputs_of(self, codes: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        pairs = self.pairs[codes & ((1 << _RANK) - 1)]
        return [patterns.values_of(side, self.format) for side in pairs.T]

    def settled(self) -> SweepTally:
        """The same tally, by the pairs' numbers instead of their codes."""
        tally = SweepTally(self.format, 2)
        tally.counts, tally.distances, tally.worst = self.counts, self.distances, self.worst
        tables = ((self.worst_bits, tally.worst_bits), (self.firsts, tally.firsts))
        for by_code, by_number in tables:
            for row in np.flatnonzero(by_code[:, 0] >= 0):
                by_number[row] = self._number(int(by_code[row, 0])), int(by_code[row, 1])
        for name, (number, code, got) in self.invariants.items():
            tally.add_violations(name, number, self._number(code), got)
        tally.tiers, tally.seconds = self.tiers, self.seconds
        return tally

    def _number(self, code: int) -> int:
        return patterns.numbered(self.pairs[code & ((1 << _RANK) - 1)].tolist(), self.format)


@with_default_fenv
def run_pair_restart(question: SweepQuestion, seed: int, restart: int, tries: int) -> Json:
    """Search with `tries` pairs; returns what `run_restart` does."""
    op, random = registry.get(question.op), np.random.default_rng([seed, restart])
    tally = SweepTally(formats.get(question.dtype), 2)
    regimes = _regimes(op, tally.format)

    def attempt(session: Session, pairs: Pairs) -> tuple[Pairs, Scores]:
        inputs = [patterns.values_of(side, tally.format) for side in pairs.T]
        got, seconds = ask(session, question, op, inputs)
        chosen = _worth_judging(got)
        order = chosen[np.lexsort(pairs[chosen].T[::-1])]
        pairs, got = pairs[order], got[order]
        batch = Batch(tally.format, pairs=pairs)
        batch.seconds["framework"] = seconds
        exact = judge_any(op, batch.codes, got, batch)
        tally.merge(batch.settled())
        return pairs, np.stack([error_of(got, exact), np.abs(judging.widest(got))], axis=1)

    return searched(
        question, tally, tries,
        draw=lambda size: drawn(size, regimes, tally.format, random),
        move=lambda pairs, size: moved(pairs, size, tally.format, random),
        attempt=attempt, best=_climbers,
    )  # fmt: skip


def _climbers(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """The worst pairs, and those whose answers are the largest and the smallest."""
    errors, answers = scores.T
    by_size = np.argsort(answers, kind="stable")
    by_size = by_size[(answers[by_size] > 0.0) & np.isfinite(answers[by_size])]
    worst = np.argsort(-errors, kind="stable")[:_CLIMBERS]
    return np.unique(np.concatenate([worst, by_size[:_EDGES], by_size[-_EDGES:]]))


def _worth_judging(got: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The places of all answers that are finite and not 0, and of the first few others."""
    wide = judging.widest(got)
    ordinary = np.isfinite(wide) & (wide != 0.0)
    extreme = np.flatnonzero(~ordinary)[:_OUT_OF_RANGE]
    return np.concatenate([np.flatnonzero(ordinary), extreme])


def _regimes(op: Op, format: Format) -> list[Pairs]:
    """The pairs of the op's own cases, by regime."""
    regimes = []
    for case in op.cases():
        if format.name in case.dtypes:
            arrays = case.build(format.name)[0]
            sides = [np.ravel(arrays[name]).view(format.bits_dtype) for name in op.inputs]
            regimes.append(np.stack(sides, axis=1).astype(np.uint64))
    return regimes


def drawn(
    size: int, regimes: Sequence[Pairs], format: Format, random: np.random.Generator
) -> Pairs:
    """Pairs from all sources where errors are likely, in random order."""
    all_patterns = patterns.everything(format)
    any_first, any_second = (stratified(size, all_patterns, format, random) for _ in range(2))
    kind = random.random(size)
    pairs = np.stack([any_first, any_second], axis=1)
    beside = kind < 0.875
    pairs[beside, 1] = _beside(any_first[beside], format, random)
    special = kind < 0.625
    pairs[special] = _beside_specials(pairs[special], any_second[special], format, random)
    if regimes:
        regime = kind < 0.5
        pairs[regime] = _of_regimes(int(regime.sum()), regimes, format, random)
    return _quiet(pairs, format)


def _of_regimes(
    size: int, regimes: Sequence[Pairs], format: Format, random: np.random.Generator
) -> Pairs:
    """Pairs of the cases, equally many of each regime, moved within a binade or left unchanged."""
    shares = np.array_split(np.arange(size), len(regimes))
    parts = [
        pairs[random.integers(0, len(pairs), len(share))]
        for pairs, share in zip(regimes, shares, strict=True)
    ]
    return moved(np.concatenate(parts), size, format, random, chosen=np.arange(size))


def _beside(first: npt.NDArray[np.uint64], format: Format, random: np.random.Generator) -> Any:
    """Partners of either sign whose magnitude is within a factor 2^(p + 2); one in eight is
    equal."""
    reach = format.p - 1 + np.log2(format.p + 2)
    second = _shifted(first, random.uniform(0.0, reach, len(first)), format, random)
    second = np.where(random.random(len(first)) < 0.125, first, second)
    signs = random.integers(0, 2, len(first), dtype=np.uint64)
    return second ^ (signs << np.uint64(patterns.width(format) - 1))


def _beside_specials(
    pairs: Pairs, partners: npt.NDArray[np.uint64], format: Format, random: np.random.Generator
) -> Pairs:
    """The pairs with a special value as the first input, the second, or both."""
    pairs = pairs.copy()
    pairs[:, 1] = partners
    values = specials(format)
    side = random.integers(0, 3, len(pairs))
    for place in (0, 1):
        chosen = side != place
        pairs[chosen, place] = random.choice(values, int(chosen.sum()))
    return pairs


def specials(format: Format) -> npt.NDArray[np.uint64]:
    """Patterns of both signs: 0, ∞, NaN, the ends of the subnormals and normals, 1 and its
    neighbours, small integers and halves."""
    one, sign = patterns.pattern_of(1.0, format), 1 << (patterns.width(format) - 1)
    infinity = patterns.pattern_of(np.inf, format)
    normal = 1 << (format.p - 1)
    positive = {0, 1, normal - 1, normal, one - 1, one, one + 1, infinity - 1, infinity}
    positive.add(infinity + 1)
    values = (0.25, 0.5, 1.5, 2, 3, 4, 5, 8, 10)
    positive |= {patterns.pattern_of(value, format) for value in values}
    negative = {pattern + sign for pattern in positive}
    return np.array(sorted(positive | negative), np.uint64)


def moved(
    pairs: Pairs,
    size: int,
    format: Format,
    random: np.random.Generator,
    chosen: npt.NDArray[np.intp] | None = None,
) -> Pairs:
    """`size` of the pairs, random or `chosen`, with one input or both moved by random distances."""
    if chosen is None:
        chosen = random.integers(0, len(pairs), size)
    result = pairs[chosen]
    side = random.integers(0, 3, size)
    for place in (0, 1):
        steps = random.uniform(0.0, format.p - 1, size)
        shifted = _shifted(result[:, place], steps, format, random)
        result[:, place] = np.where(side != place, shifted, result[:, place])
    return _quiet(result, format)


def _quiet(pairs: Pairs, format: Format) -> Pairs:
    """The pairs with signalling NaNs made quiet: IEEE 754 leaves pow(sNaN, 0) and hypot(sNaN, inf)
    to the library."""
    magnitude = pairs & np.uint64((1 << (patterns.width(format) - 1)) - 1)
    nan = magnitude > np.uint64(patterns.pattern_of(np.inf, format))
    return np.where(nan, pairs | np.uint64(1 << (format.p - 2)), pairs)


def _shifted(
    start: npt.NDArray[np.uint64], powers: Any, format: Format, random: np.random.Generator
) -> npt.NDArray[np.uint64]:
    """Patterns ± 2^powers away, wrapping round at the end of the format."""
    steps = np.exp2(powers).astype(np.uint64)
    shifted = np.where(random.random(len(start)) < 0.5, start + steps, start - steps)  # modulo 2^64
    return shifted & np.uint64((1 << patterns.width(format)) - 1)
