"""Hypotheses about an answer: a variant of the question, a model of the algorithm, a pattern.

Sources make hypotheses, and `scoring` tries each. One fits where it has the kernel's bits in every
element of the output, or where its answer explains the output as mere rounding and the right answer
does not. Its confidence follows from bits of evidence (`evidence`): *proven*, 40 bits, and no other
cause fits as well; *matched*, 20 bits; *consistent*, it fits, but too few elements decide, or only
the pattern and size of the errors do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.records.words import Confidence

ORDER = "summation_order"  # the cause that any correct kernel may have
HARMLESS = (ORDER, "bias_first")
VALUE = "param_differs"  # another value of a param
Details = Mapping[str, Any]


class Outcome(NamedTuple):
    """The result of a hypothesis that its source has compared itself, and the error it leaves."""

    fits: bool
    equal: int
    elements: int
    over_bound: float | None = None
    over_plain: float | None = None


@dataclass(frozen=True)
class Prediction:
    """A hypothesis's prediction of one output, in one of four ways.

    `bits`: every bit of the output. `answer`: the right answer to another question; `bits` are then
    its correct rounding. `wrong`: the elements that a pattern marks as wrong; `counted`: whether
    they are evidence; `earns`: the bits of each, if these are not its code length. `outcome`: the
    finished result, where bits cannot decide. `against`: the bits of the nearest harmless model.
    `alike`: how often other right models have the kernel's bits of a unit.
    """

    bits: Array | None = None
    answer: Answer | None = None
    wrong: Array | None = None
    outcome: Outcome | None = None
    against: Array | None = None
    alike: float = 0.0
    counted: bool = True
    bits_gained: Doubles | None = None


@dataclass(frozen=True)
class Evidence:
    """The evidence for a hypothesis in bits: the code length that it saves on the observations,
    less the cost of its description (`described`).

    `units`: the observations. `needed`: how many would make it matched, None where it is or none
    would do. `survivors`: the causes that these observations cannot tell apart, its own first.
    """

    PROVEN: ClassVar[float] = 40.0  # one right kernel in 10^12 is mistaken for it
    MATCHED: ClassVar[float] = 20.0
    APART: ClassVar[float] = 20.0  # the lead by which one hypothesis rules another out

    bits: float
    units: int
    needed: int | None = None
    survivors: tuple[str, ...] = ()
    described: float = 0.0

    @property
    def confidence(self) -> Confidence:
        """The confidence that these bits give."""
        if self.bits >= self.PROVEN:
            return "proven"
        return "matched" if self.bits >= self.MATCHED else "consistent"


@dataclass(frozen=True)
class Variant:
    """A hypothesis that the kernel answered another question, maybe for some outputs only.

    `cause`: its stable identifier, `summation_order` where there is nothing to blame; `details`:
    its numbers. Its description costs log2 of the `trials` (all that were tried to find it), the
    best unit's bits for each of the `parameters` that were solved for from the output, and `price`
    more bits.
    """

    cause: str
    details: Details
    answer: Answer
    trials: int = 1
    parameters: int = 0
    price: float = 0.0
    model: ClassVar[None] = None

    def predicts(self, output: str) -> Prediction | None:
        """The answer to the other question."""
        return Prediction(answer=self.answer) if output in self.answer.reference else None


@dataclass(frozen=True)
class Claim:
    """A hypothesis about one output, as `Variant`: an algorithm that gives its bits (`model`: its
    name), a pattern of its wrong elements, or errors of some size."""

    cause: str
    output: str
    prediction: Prediction
    details: Details = field(default_factory=dict)
    model: str | None = None
    trials: int = 1
    parameters: int = 0
    price: float = 0.0

    def predicts(self, output: str) -> Prediction | None:
        """Its prediction of its own output, None for others."""
        return self.prediction if output == self.output else None

    def beside(self, alike: float) -> Claim:
        """A copy in which other right models have a unit's bits at least this often."""
        prediction = self.prediction
        return replace(self, prediction=replace(prediction, alike=max(prediction.alike, alike)))


Hypothesis = Variant | Claim


@dataclass(frozen=True)
class Candidate:
    """A hypothesis that was compared with one output: it reproduces `equal` of the `elements` and
    leaves an error `over_bound` and `over_plain`. `evidence`: None where bits cannot decide."""

    cause: str
    output: str
    confidence: Confidence | None
    equal: int
    elements: int
    over_bound: float | None = None
    over_plain: float | None = None
    details: Details = field(default_factory=dict)
    model: str | None = None
    evidence: Evidence | None = None
    trials: int = 1
    parameters: int = 0
    price: float = 0.0
    prediction: Prediction | None = field(default=None, repr=False, compare=False)

    def predicts(self, output: str) -> Prediction | None:
        """Its prediction of its own output, None for others."""
        return self.prediction if output == self.output else None

    def against(self, model: Array | None) -> Candidate:
        """A copy in which the nearest harmless model has these bits; patterns have no bits."""
        prediction = self.prediction
        if prediction is None or prediction.bits is None:
            return self
        return replace(self, prediction=replace(prediction, against=model))

    @property
    def may_be_told(self) -> bool:
        """Whether it blames no one, or its bits, or more units', pay for its description."""
        known = self.evidence
        return self.cause in HARMLESS or not known or known.bits >= 0.0 or bool(known.needed)

    @property
    def exact(self) -> bool:
        """Whether every bit is reproduced."""
        return self.elements > 0 and self.equal == self.elements

    @property
    def ruled_out(self) -> bool:
        return self.confidence is None

    def fits_as_well_as(self, other: Candidate) -> bool:
        """Whether it leaves an error that is at most one of the plain algorithm's larger."""
        left, of_other = self.over_plain, other.over_plain
        return left is not None and of_other is not None and left <= of_other + 1.0

    @property
    def evidence_confidence(self) -> Confidence:
        """The confidence of its evidence; consistent if there is none."""
        return "consistent" if self.evidence is None else self.evidence.confidence


Questions = Callable[[Problem, Arrays], Iterable[Hypothesis]]
Algorithms = Callable[[Problem, Arrays, Mapping[str, Fit]], Iterable[Hypothesis]]


def moved(
    problem: Problem,
    output: str,
    values: Doubles,
    spread: Doubles | float,
    factor: Doubles | float = 1.0,
    about: Answer | None = None,
) -> Answer:
    """One output's answer if these were the right values, known to ± spread (NaN where that is not
    finite), for hypotheses that no oracle answers: with the right answer's bound, or that of
    another `about` it, times a factor, and its plain algorithm's errors times the factor."""
    truth = about or problem.truth
    reference, plain = truth.reference[output], truth.plain[output]
    format = formats.of(plain)
    with np.errstate(over="ignore", invalid="ignore"):
        errors = plain.astype(np.float64) - np.asarray(reference)
        sized = formats.cast(values + errors * factor, format)
        # The truth's bound has one rounding of an output, at its own magnitude.
        larger = np.maximum(np.abs(values) - np.abs(factor * np.asarray(reference)), 0.0)
        stored = format.u * (larger + format.min_normal)
    certain = np.isfinite(values) & np.isfinite(spread)
    values = np.where(certain | ~np.isfinite(values), values, np.nan)
    return Answer(
        {output: Enclosure(values, 0.0, np.where(certain, spread, 0.0))},
        {output: truth.bound[output] * np.abs(factor) + np.where(np.isfinite(stored), stored, 0.0)},
        {output: sized},
    )


def scaled(problem: Problem, output: str, factor: float) -> Answer:
    """One output's answer times a number: the right answer, multiplied and rounded again."""
    with np.errstate(over="ignore", invalid="ignore"):  # the kernel would overflow too
        reference = problem.truth.reference[output]
        values = np.asarray(reference) * factor
        radius = np.ldexp(reference.radius, reference.scale) * abs(factor)
        again = formats.of(problem.truth.plain[output]).u * np.abs(values)
    answer = moved(problem, output, values, radius + np.abs(values) * 2.0**-51, factor)
    bound = answer.bound[output] + np.where(np.isfinite(again), again, 0.0)
    return replace(answer, bound={output: bound}, invariant=False)
