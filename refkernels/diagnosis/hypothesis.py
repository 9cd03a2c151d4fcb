"""What may be behind an answer: a variant of the question, a model of the algorithm, a pattern.

Each hypothesis is tried whatever the verdict. It fits where a model, or the correct rounding of a
variant, has the kernel's bits in every element of the output, or where the answer to a variant
explains the output as nothing but rounding (inside its bound, not unusual), which the answer to the
question itself does not. How sure that makes it is counted in bits of evidence (`evidence`):
- *proven*: every bit is reproduced, with 40 bits of evidence, and what fits as well has the same
  cause; or a variant with 40 bits, and no other cause fits.
- *matched*: 20 bits.
- *consistent*: it fits, but so few elements cannot tell; or the errors have the pattern and the
  size, and nothing else was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem

Confidence = Literal["proven", "matched", "consistent"]
CONFIDENCES: tuple[Confidence, ...] = ("proven", "matched", "consistent")
ORDER = "summation_order"  # the one cause that any correct kernel may have
HARMLESS = (ORDER, "bias_first")
Details = Mapping[str, Any]


@dataclass(frozen=True)
class Variant:
    """Another question: `cause` is what it would mean that the kernel answered it, `details` are
    its numbers (the value of eps, the factor). The answer may cover some outputs only. `trials`:
    how many (model, parameter) pairs were tried to find it; `parameters`: how many of its numbers
    were solved for from the output; `price`: bits that its description costs besides."""

    cause: str
    details: Details
    answer: Answer
    trials: int = 1
    parameters: int = 0
    price: float = 0.0


@dataclass(frozen=True)
class Candidate:
    """A cause with what speaks for it. `equal` of `elements`: bits reproduced; `over_bound` and
    `over_plain`: what remains of the error under this hypothesis. `ruled_out`: it does not fit.

    `bits`: the evidence, None where there is no telling by bits; `units`: how many observations it
    rests on; `needed`: how many like these would make it matched. `trials`, `parameters` and
    `price`: as of `Variant`; a candidate may stand for the best of many.
    For the counting: `prediction`, what the kernel says if this is the cause; `answer`, that of a
    variant; `against`, the nearest harmless model's prediction; `alike`, how often other right
    models have the kernel's bits of a unit; `wrong`, the elements of which a pattern speaks.
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
    bits: float | None = None
    units: int | None = None
    needed: int | None = None
    trials: int = 1
    parameters: int = 0
    price: float = 0.0
    prediction: Array | None = field(default=None, repr=False, compare=False)
    answer: Answer | None = field(default=None, repr=False, compare=False)
    against: Array | None = field(default=None, repr=False, compare=False)
    alike: float = field(default=0.0, repr=False, compare=False)
    wrong: Array | None = field(default=None, repr=False, compare=False)

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


Variants = Callable[[Problem, Arrays], Iterable[Variant]]
Pattern = Callable[[Problem, str, Array], Candidate | None]


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
        sized = (values + errors * factor).astype(plain.dtype)
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
