"""Another value of a param on which an output depends in steps: a beta of Lion, whose update is a
sign.

The elements that have changed bound the kernel's value from one side, those that have not from the
other. The evidence is in their places (`places`), less the number of values at which one changes;
a gradient times a number changes the same signs, so all other outputs must be there, and right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import few_digits, places
from refkernels.diagnosis.hypothesis import Claim, Outcome, Prediction
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.diagnosis.variants.params import cause_of, output_with
from refkernels.diagnosis.wrong import wrong_elements

_LARGEST = 1 << 18  # elements of an output
_HALVINGS = 40
_NEAREST = 2.0**-30  # relative: how near to an end that is not in the domain


def other_values(problem: Problem, outputs: Arrays) -> Iterator[Claim]:
    """For each float param with a domain of two ends, the values that the wrong elements allow."""
    if problem.op.formulas is None:
        return
    for name, asked in {**problem.op.params, **problem.params}.items():
        domain = problem.op.formulas.domain(name)
        if not isinstance(asked, float) or not math.isfinite(domain.most - domain.least):
            continue
        for output, got in outputs.items():
            if got.size > _LARGEST or got.shape != problem.truth.reference[output].shape:
                continue
            steps = _Steps(problem, output, got, name, _others_right(problem, outputs, output))
            for end in (domain.least, domain.most):
                inside = end if end in domain else end + (asked - end) * _NEAREST
                claim = steps.claim(asked, inside) if inside != asked else None
                if claim is not None:
                    yield claim


def _others_right(problem: Problem, outputs: Arrays, output: str) -> bool:
    others = problem.truth.reference.keys() - {output}
    return others <= outputs.keys() and not any(
        wrong_elements(problem, name, outputs[name]).any() for name in others
    )


@dataclass(frozen=True)
class _Steps:
    """One output and one param. `alone`: whether all other outputs are there, and right."""

    problem: Problem
    output: str
    got: Array
    name: str
    alone: bool

    def claim(self, asked: float, end: float) -> Claim | None:
        """The values between the requested one and an end of the domain."""
        here, there = self._values(asked), self._values(end)
        if here is None or there is None:
            return None
        wrong, changing = ~self._near(here), ~self._alike(here, there)
        if not wrong.any() or not self._near(there)[wrong].all() or wrong.all():
            return None
        settled = self._end_of(wrong, end, asked)
        first = end if self._near(there)[~wrong].all() else self._end_of(~wrong, asked, end)
        if (first - settled) * (end - asked) < 0.0:
            return None
        low, high = sorted((settled, first))
        middle = self._values((low + high) / 2.0)
        if middle is None or not self._near(middle).all():
            return None
        return self._told(asked, (low, high), wrong, changing)

    def _end_of(self, elements: Array, inside: float, outside: float) -> float:
        """The last value from `inside` to `outside` that gives these elements."""
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2.0
            values = self._values(middle)
            if values is not None and self._near(values)[elements].all():
                inside = middle
            else:
                outside = middle
        return inside

    def _told(
        self, asked: float, ends: tuple[float, float], wrong: Array, changing: Array
    ) -> Claim:
        low, high = ends
        value, flags, _ = few_digits.told(low, (low + high) / 2.0, high, asked)
        cause, details = cause_of(self.name, asked, value, ends)
        earned = places.by_unit(self.problem, self.output, wrong)
        gained = places.shared(self.problem, self.output, wrong, earned)
        outcome = Outcome(True, self.got.size, self.got.size)
        prediction = Prediction(
            wrong=wrong, outcome=outcome, counted=self.alone, bits_gained=gained
        )
        price = math.log2(np.count_nonzero(changing) + 1.0)
        if flags:  # the evidence is in the places, whatever the value is called
            details["several"] = True
        return Claim(cause, self.output, prediction, details, price=price)

    def _values(self, value: float) -> Doubles | None:
        return output_with(self.problem, self.output, self.name, value)

    def _near(self, values: Doubles) -> Array:
        return self._alike(to_float64(self.got), values)

    def _alike(self, some: Doubles, others: Doubles) -> Array:
        """Whether numbers are alike but for rounding."""
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.maximum(np.abs(some), np.abs(others))
            limit = self.problem.truth.bound[self.output] + self.problem.format.u * size
            near = np.abs(some - others) <= limit
        alike: Array = near | (some == others) | (np.isnan(some) & np.isnan(others))
        return alike
