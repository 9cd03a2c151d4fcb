"""What may be behind an answer: a variant of the question, a model of the algorithm, a pattern.

Sources make hypotheses: `Questions` from the problem and the outputs, `Algorithms` from how the
outputs fit the truth besides. `scoring` tries each of them whatever the verdict. One fits where a
model, or the correct rounding of a variant, has the kernel's bits in every element of the output,
or where the answer to a variant explains the output as nothing but rounding (inside its bound, not
unusual), which the answer to the question itself does not. How sure that makes it is counted in
bits of evidence (`evidence`):
- *proven*: every bit is reproduced, with 40 bits of evidence, and what fits as well has the same
  cause; or a variant with 40 bits, and no other cause fits.
- *matched*: 20 bits.
- *consistent*: it fits, but so few elements cannot tell; or the errors have the pattern and the
  size, and nothing else was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.records.words import Confidence

ORDER = "summation_order"  # the one cause that any correct kernel may have
HARMLESS = (ORDER, "bias_first")
Details = Mapping[str, Any]


class Outcome(NamedTuple):
    """How a hypothesis fared where its source had to count itself: on a sample, or by the size of
    the errors. `over_bound` and `over_plain`: what it leaves of the error."""

    fits: bool
    equal: int
    elements: int
    over_bound: float | None = None
    over_plain: float | None = None


@dataclass(frozen=True)
class Prediction:
    """What a kernel says of one output if a hypothesis is right, in one of four ways.

    `bits`: the output itself, in its format, every bit of it. `answer`: the right value of another
    question, as an Enclosure, with the bound that a right kernel keeps about it; `bits` are then
    its correct rounding. `wrong`: a mask of the elements that a pattern speaks of, which says where
    something is wrong and not what stands there; `counted`: whether its bits are evidence.
    `outcome`: what was counted already, for what no bits can decide.
    `against`: what the nearest harmless model says. `alike`: how often other right models have the
    kernel's bits of a unit.
    """

    bits: Array | None = None
    answer: Answer | None = None
    wrong: Array | None = None
    outcome: Outcome | None = None
    against: Array | None = None
    alike: float = 0.0
    counted: bool = True


class Hypothesis(Protocol):
    """What may be behind an answer: a fault, an order of summation, a pattern, a narrower format, a
    model of a framework's algorithm. Made for one question, and frozen.

    `cause`: the stable identifier of what it would mean, `summation_order` where there is nothing
    to blame; hypotheses of one cause share what is known. `details`: its numbers (the value of eps,
    the factor, the name of the order). `model`: the name of the algorithm, None of what is none.
    Its description costs log2 of the `trials` (the (model, parameter) pairs that were tried to find
    it, this one included), what the best unit earns for each of the `parameters` that were solved
    for from the output, and `price` bits besides.
    """

    @property
    def cause(self) -> str: ...
    @property
    def details(self) -> Details: ...
    @property
    def model(self) -> str | None: ...
    @property
    def trials(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    @property
    def price(self) -> float: ...

    def predicts(self, output: str) -> Prediction | None:
        """What it says of an output; None of one that it says nothing of."""
        ...


@dataclass(frozen=True)
class Evidence:
    """What speaks for a hypothesis, in bits (`evidence` counts them): the code length that it saves
    on the observations, less what its description costs.

    `units`: how many observations it rests on. `needed`: how many like these would make it matched,
    None where it is, or where none would. `survivors`: the causes of the class of hypotheses that
    these observations cannot tell apart, its own the first; what is known is what they share.
    """

    PROVEN: ClassVar[float] = 40.0  # one right kernel in a million million would be taken for it
    MATCHED: ClassVar[float] = 20.0
    APART: ClassVar[float] = 20.0  # by which one hypothesis rules another out

    bits: float
    units: int
    needed: int | None = None
    survivors: tuple[str, ...] = ()

    @property
    def confidence(self) -> Confidence:
        """What so much evidence is called."""
        if self.bits >= self.PROVEN:
            return "proven"
        return "matched" if self.bits >= self.MATCHED else "consistent"


@dataclass(frozen=True)
class Variant:
    """A `Hypothesis`: another question, that the kernel answered. The answer may cover some outputs
    only."""

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
    """A `Hypothesis` about one output: an algorithm that gives its bits, a pattern of its wrong
    elements, or errors of a size."""

    cause: str
    output: str
    prediction: Prediction
    details: Details = field(default_factory=dict)
    model: str | None = None
    trials: int = 1
    parameters: int = 0
    price: float = 0.0

    def predicts(self, output: str) -> Prediction | None:
        """What it says of its own output."""
        return self.prediction if output == self.output else None

    def beside(self, alike: float) -> Claim:
        """The same, other right models having the kernel's bits of a unit so often or oftener."""
        mine = self.prediction
        return replace(self, prediction=replace(mine, alike=max(mine.alike, alike)))


@dataclass(frozen=True)
class Candidate:
    """A `Hypothesis` that was held against one output, and what speaks for it.

    `equal` of `elements`: bits reproduced; `over_bound` and `over_plain`: what remains of the error
    under this hypothesis. `ruled_out`: it does not fit. `evidence`: None where there is no telling
    by bits. `prediction`: what it says of the output, where it fits.
    """

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
        """What it says of its own output."""
        return self.prediction if output == self.output else None

    def against(self, model: Array | None) -> Candidate:
        """The same, that being the nearest harmless model's bits; a pattern has none to compare."""
        prediction = self.prediction
        if prediction is None or prediction.bits is None:
            return self
        return replace(self, prediction=replace(prediction, against=model))

    @property
    def exact(self) -> bool:
        """Whether every bit is reproduced."""
        return self.elements > 0 and self.equal == self.elements

    @property
    def ruled_out(self) -> bool:
        return self.confidence is None

    @property
    def share(self) -> float:
        """Bits reproduced."""
        return self.equal / self.elements if self.elements else 0.0

    @property
    def sure(self) -> Confidence:
        """What its evidence is called; consistent where there is none."""
        return "consistent" if self.evidence is None else self.evidence.confidence


Questions = Callable[[Problem, Arrays], Iterable[Hypothesis]]
Algorithms = Callable[[Problem, Arrays, Mapping[str, Fit]], Iterable[Hypothesis]]


def moved(
    problem: Problem,
    output: str,
    values: Doubles,
    spread: Doubles | float,
    factor: Doubles | float = 1.0,
) -> Answer:
    """The answer of one output where the right values were these, known to ± spread (NaN where
    spread is none): the bound of the truth, times a factor, with its rounding at their magnitude,
    and the plain algorithm's errors with it. For hypotheses that no oracle answers: float64 is far
    finer than what they have to tell apart."""
    truth = problem.truth
    reference, plain = truth.reference[output], truth.plain[output]
    format = formats.of(plain)
    with np.errstate(over="ignore", invalid="ignore"):
        errors = plain.astype(np.float64) - np.asarray(reference)
        sized = formats.cast(values + errors * factor, format)
        # The truth's bound has one rounding of an output, at its own magnitude.
        larger = np.maximum(np.abs(values) - np.abs(factor * np.asarray(reference)), 0.0)
        stored = format.u * (larger + format.min_normal)
    known = np.isfinite(values) & np.isfinite(spread)
    values = np.where(known | ~np.isfinite(values), values, np.nan)
    return Answer(
        {output: Enclosure(values, 0.0, np.where(known, spread, 0.0))},
        {output: truth.bound[output] * np.abs(factor) + np.where(np.isfinite(stored), stored, 0.0)},
        {output: sized},
    )


def scaled(problem: Problem, output: str, factor: float) -> Answer:
    """The answer of one output times a number: a right answer, multiplied and rounded again."""
    with np.errstate(over="ignore", invalid="ignore"):  # what the kernel could not hold either
        reference = problem.truth.reference[output]
        values = np.asarray(reference) * factor
        radius = np.ldexp(reference.radius, reference.scale) * abs(factor)
        again = formats.of(problem.truth.plain[output]).u * np.abs(values)
    answer = moved(problem, output, values, radius + np.abs(values) * 2.0**-51, factor)
    bound = answer.bound[output] + np.where(np.isfinite(again), again, 0.0)
    return replace(answer, bound={output: bound}, invariant=False)
