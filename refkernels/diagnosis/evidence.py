"""Evidence in bits: what speaks for a hypothesis, and how much it takes.

    evidence = sum over units of the bits earned - log2 T

T counts every (model, parameter) pair that was tried on the question. A unit (`units`) earns
- by a model that has all its bits: the code length (`code_lengths`) that it saves, or
  -log2 of the share of the other right models that have these bits too, if that is less: how a
  right kernel rounds is no secret to another right kernel;
- by another question: the shorter code about that answer's own rounding, at most 8 bits, where
  it is another answer. A parameter that was solved for costs what the best unit earns.
Of a hypothesis that blames the kernel only those units count in which it says something else than
the nearest harmless one, or than the right answer, rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis import code_lengths, units
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import (
    HARMLESS,
    Candidate,
    Claim,
    Evidence,
    Hypothesis,
    Prediction,
)
from refkernels.diagnosis.problem import Answer, Array, Doubles, Problem
from refkernels.metrology import ulp


def bits(array: Array) -> Array:
    """The bit patterns, every NaN the same one."""
    quiet = np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array)
    result: Array = np.ascontiguousarray(quiet).view(formats.of(array).bits_dtype)
    return result.reshape(array.shape)


def same(a: Array, b: Array) -> Array:
    """Mask of the elements with the same bits."""
    found: Array = np.asarray(np.equal(bits(a), bits(b)))
    return found


def apart(model: Array, other: Array, rows: bool = False) -> int:
    """In how many elements (rows) two models differ: elements of a row may share one rounding."""
    different: Array = np.asarray(np.logical_not(same(model, other)))
    if rows and different.ndim > 1:
        different = np.asarray(different.reshape(-1, different.shape[-1]).any(axis=1))
    return int(np.count_nonzero(different))


def agreement(shares: Sequence[float]) -> float:
    """How often one right model has a unit's bits by another's rounding, from the shares of units
    where each of the others has them."""
    return float(np.mean(shares)) if shares else 0.0


def reproduces(truth: Fit, got: Array, model: Array) -> bool:
    """Whether a model has all bits of an output, and these are not simply the correctly rounded
    ones."""
    return got.size > 0 and not truth.exact and bool(same(got, model).all())


@dataclass(frozen=True)
class Tried:
    """A claim of a family of algorithms, the share of the output's bits that it has, and whether it
    fits."""

    claim: Claim
    share: float
    fits: bool

    def beside(self, alike: float) -> Tried:
        """The same, other right models having its bits of a unit so often."""
        return replace(self, claim=self.claim.beside(alike))

    def against(self, model: Array | None) -> Tried:
        """The same, that being the nearest harmless model's bits."""
        prediction = replace(self.claim.prediction, against=model)
        return replace(self, claim=replace(self.claim, prediction=prediction))


def tried(claim: Claim, truth: Fit, got: Array) -> Tried:
    """A claim held against the output."""
    model = claim.prediction.bits
    assert model is not None
    equal = int(np.count_nonzero(same(got, model)))
    whole = equal == got.size and got.size > 0
    return Tried(claim, equal / got.size if got.size else 0.0, whole and not truth.exact)


def nearest(family: Iterable[Tried], beside_fits: bool) -> list[Claim]:
    """The claims that fit, and of the others, for each output and cause, the nearest, with the
    trials of all. `beside_fits`: also where a claim of that output and cause fits."""
    family = list(family)
    fitting = [one for one in family if one.fits]
    named = {(one.claim.output, one.claim.cause) for one in fitting}
    kept: dict[tuple[str, str], Tried] = {}
    for one in family:
        key = (one.claim.output, one.claim.cause)
        if one.fits or (key in named and not beside_fits):
            continue
        known = kept.get(key)
        best = one if known is None or one.share > known.share else known
        trials = one.claim.trials + (0 if known is None else known.claim.trials)
        kept[key] = replace(best, claim=replace(best.claim, trials=trials))
    return [one.claim for one in (*fitting, *kept.values())]


@dataclass(frozen=True)
class Observed:
    """One output as it is observed: its units, and each counted element's code length under the
    null model."""

    problem: Problem
    truth: Fit
    got: Array
    units: units.Units
    lengths: Doubles

    def bits_of(self, one: Candidate) -> Doubles:
        """What each unit earns by a candidate that fits."""
        prediction = one.predicts(self.truth.output)
        if prediction is not None and prediction.wrong is not None:
            return self._of_pattern(prediction.wrong)
        if prediction is None or prediction.bits is None:
            return np.zeros(self.lengths.size)
        if one.exact:
            return self._of_model(one, prediction)
        assert prediction.answer is not None
        length = code(self.problem, self.got, self.truth.output, prediction.answer, self.units)
        differ = np.logical_not(same(prediction.bits, self.right))
        if prediction.against is not None:
            differ &= np.logical_not(same(self.got, prediction.against))
        saved = np.where(self.units.chosen(differ), self.lengths - length, 0.0)
        return self.units.gained(saved)

    @property
    def right(self) -> Array:
        """The correctly rounded answer."""
        reference = self.problem.truth.reference[self.truth.output]
        return reference.round(formats.of(self.got))[0]

    def _of_model(self, one: Candidate, prediction: Prediction) -> Doubles:
        earned = self.units.earned(self.lengths)
        if prediction.alike > 0.0:
            earned = np.minimum(earned, -math.log2(prediction.alike))
        against = prediction.against
        if against is None and one.cause not in HARMLESS:
            against = self.right
        if against is not None:
            differ = np.logical_not(same(self.got, against))
            earned = np.where(self.units.any(self.units.chosen(differ)), earned, 0.0)
        return earned

    def _of_pattern(self, wrong: Array) -> Doubles:
        """Element by element: no shared statistic explains a pattern."""
        return np.where(self.units.chosen(wrong), self.lengths, 0.0)

    def left(self, one: Candidate) -> Doubles:
        """The code that a candidate leaves each unit."""
        prediction = one.predicts(self.truth.output)
        if one.exact or prediction is None or prediction.bits is None or prediction.answer is None:
            return np.zeros(int(self.units.owner[-1]) + 1)
        length = code(self.problem, self.got, self.truth.output, prediction.answer, self.units)
        return self.units.gained(np.maximum(length, 0.0))


def observe(problem: Problem, got: Array, truth: Fit) -> Observed:
    """An output's units and code lengths."""
    counted = units.of(problem, truth.output)
    lengths = code(problem, got, truth.output, problem.truth, counted)
    return Observed(problem, truth, got, counted, lengths)


def code(
    problem: Problem, got: Array, output: str, answer: Answer, counted: units.Units
) -> Doubles:
    """The code lengths of the counted elements about an answer; about the truth, of a kernel that
    may be any of the op's forms."""
    reference = answer.reference[output].reshape(-1)[counted.places]
    worked = problem.worked if answer is problem.truth else (answer.plain,)
    format = answer.format or formats.of(got)

    def steps_of(array: Array) -> Doubles:
        return code_lengths.steps(counted.chosen(array).astype(format.storage), reference)

    spreads = [code_lengths.spread(steps_of(one[output])) for one in worked if output in one]
    spreads = spreads or [code_lengths.spread(np.zeros(1))]
    steps = steps_of(got)
    widths = _widths(np.asarray(reference), counted.chosen(answer.bound[output]), format)
    return code_lengths.lengths(steps, max(spreads), widths, spreads[0])


def _widths(exact: Doubles, bound: Doubles, format: Format) -> Doubles:
    """How many floats an element's bound spans, in terms of the median, where that is more."""
    size = np.maximum(np.abs(exact), format.min_normal)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        inside = np.where(np.isfinite(size), bound / ulp(size, format), 0.0)
        across = 2.0 ** (format.p - 1) * (1.0 + np.log2(bound / size))
    spans = np.where(bound > size, np.minimum(inside, across), inside)
    spans = np.where(np.isfinite(spans), spans, 0.0)
    middle = float(np.median(spans)) if spans.size else 0.0
    return np.maximum(1.0, spans / middle) if middle > 0.0 else np.ones(spans.size)


def weighed(one: Hypothesis, earned: Doubles, count: int, tried: int) -> Evidence:
    """What units that earned so much say for a hypothesis, of `tried` (model, parameter) pairs."""
    base = math.log2(max(tried, 1)) + one.price
    total = float(np.sum(earned))
    bits = total - (base + one.parameters * float(np.max(earned, initial=0.0)))
    needed = None
    if bits < Evidence.MATCHED and total > 0.0 and count:
        solved = base + Evidence.MATCHED
        needed = max(math.ceil(solved / (total / count)) + one.parameters, count + 1)
    return Evidence(bits, count, needed)
