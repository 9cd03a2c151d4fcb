"""What a program that narrows a result answers, beside midpoints too.

A kernel's own result lies some units beside ours, so near a midpoint it may be rounded to the other
neighbour. Readings with the results moved to either side, by as much as the plain algorithm's may
err, show which elements of an output that would change, and by how much.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.contexts.doubles import Doubles
from refkernels.contexts.value import Value
from refkernels.contexts.working import Array, RoundedArithmetic, RoundedValue, data
from refkernels.diagnosis.fit import LIKE
from refkernels.diagnosis.hypothesis import moved
from refkernels.diagnosis.problem import Answer, Problem
from refkernels.diagnosis.variants import formulas as other_formulas
from refkernels.ops.formula import Formula

_UNITS = 8.0  # of the working format: how far a kernel's result may lie beside ours, at least


class _Beside(Doubles):
    """NumPy's float64, in which numbers are moved to a `side` before they are narrowed: by the
    units, or by what those of the plain algorithm err, each or usually. `narrowed`: the numbers
    that were narrowed, and what they became, in order."""

    def __init__(self, side: float, errors: Iterable[Any], unit: float) -> None:
        super().__init__()
        self.side, self.errors, self.unit = side, iter(errors), unit
        self.narrowed: list[tuple[Array, RoundedValue]] = []

    def narrow(self, a: Value, format: str) -> RoundedValue:
        error = next(self.errors)
        reach = np.maximum(_UNITS * self.unit, LIKE * np.maximum(error, np.median(error)))
        reach *= self.side * (error > 0.0)  # what was not rounded before is moved to no side
        self.narrowed.append((data(a), super().narrow(self.value(data(a) * (1.0 + reach)), format)))
        return self.narrowed[-1][1]


class _Plain(RoundedArithmetic):
    """The working format, which goes on from what float64 narrowed: another neighbour of a midpoint
    would stay beside it. `errors`: relative, of the numbers before they are narrowed, in order."""

    def __init__(self, format: formats.Format, narrowed: list[tuple[Array, RoundedValue]]) -> None:
        super().__init__(format)
        self.narrowed, self.errors = iter(narrowed), list[Array]()

    def narrow(self, a: Value, format: str) -> RoundedValue:
        number, result = next(self.narrowed)
        with np.errstate(all="ignore"):
            error = np.abs(to_float64(data(a)) / number - 1.0)
        self.errors.append(np.where(np.isfinite(error), error, 0.0))
        return self.value(data(result).astype(data(a).dtype))


def answer(problem: Problem, formula: Formula, whole: Formula) -> Answer:
    """The answer of a formula that narrows a result; where rounding in its steps may change it, the
    bound and the plain algorithm have that change. Its other errors are those of the `whole`
    formula, which does not narrow it."""
    format = formats.working_format(problem.format)
    exactly = _Beside(0.0, itertools.repeat(0.0), format.u)
    values = problem.computed(formula, exactly, formats.BINARY64)
    plainly, right = _Plain(format, exactly.narrowed), other_formulas.answer(problem, whole)
    problem.computed(formula, plainly)
    beside = (_Beside(side, plainly.errors, format.u) for side in (-1.0, 1.0))
    below, above = (problem.computed(formula, xp, formats.BINARY64) for xp in beside)
    reference, bound, plain = (dict[str, Any]() for _ in range(3))
    for name, value in values.items():
        spread = sum(np.abs(to_float64(side[name]) - value) for side in (below, above))
        part, other = moved(problem, name, value, spread, about=right), np.nan_to_num(spread)
        reference |= part.reference
        bound[name] = part.bound[name] + other
        plain[name] = formats.cast(to_float64(part.plain[name]) + other, part.plain[name].dtype)
    return Answer(reference, bound, plain, invariant=False)
