"""What a program that narrows a result answers, beside midpoints too.

A kernel's own result lies some units beside ours, so near a midpoint it may be rounded to the other
neighbour. Readings with the results moved to either side, by as much as the plain algorithm's may
err, show which elements of an output that would change, and by how much.
"""

from __future__ import annotations

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


class _Plain(RoundedArithmetic):
    """The working format; `narrowed` are the numbers before they are narrowed, in order."""

    def __init__(self, format: formats.Format) -> None:
        super().__init__(format)
        self.narrowed: list[Array] = []

    def narrow(self, a: Value, format: str) -> RoundedValue:
        self.narrowed.append(to_float64(data(a)))
        return super().narrow(a, format)


class _Beside(Doubles):
    """NumPy's float64, in which numbers are moved to a `side` before they are narrowed: by the
    units, or by what those of the plain algorithm, `narrowed`, err, each or usually."""

    def __init__(self, side: float, narrowed: list[Array], unit: float) -> None:
        super().__init__()
        self.side, self.plain, self.unit = side, iter(narrowed), unit

    def narrow(self, a: Value, format: str) -> RoundedValue:
        number, plain = data(a), next(self.plain)
        with np.errstate(all="ignore"):
            error = np.abs(plain / number - 1.0)
        error = np.where(np.isfinite(error), error, 0.0)
        reach = np.maximum(_UNITS * self.unit, LIKE * np.maximum(error, np.median(error)))
        reach *= self.side * (error > 0.0)  # what was not rounded before is moved to no side
        return super().narrow(self.value(number * (1.0 + reach)), format)


def answer(problem: Problem, formula: Formula, whole: Formula) -> Answer:
    """The answer of a formula that narrows a result; where rounding in its steps may change it, the
    bound and the plain algorithm have that change. Its other errors are those of the `whole`
    formula, which does not narrow it."""
    plainly = _Plain(formats.working_format(problem.format))
    problem.computed(formula, plainly)
    unit, right = plainly.format.u, other_formulas.answer(problem, whole)
    values, below, above = (
        {name: to_float64(array) for name, array in answers.items()}
        for side in (0.0, -1.0, 1.0)
        for xp in [_Beside(side, plainly.narrowed, unit)]
        for answers in [problem.computed(formula, xp, formats.BINARY64)]
    )
    reference, bound, plain = (dict[str, Any]() for _ in range(3))
    for name, value in values.items():
        spread = np.abs(below[name] - value) + np.abs(above[name] - value)
        part, other = moved(problem, name, value, spread, about=right), np.nan_to_num(spread)
        reference |= part.reference
        bound[name] = part.bound[name] + other
        plain[name] = formats.cast(to_float64(part.plain[name]) + other, part.plain[name].dtype)
    return Answer(reference, bound, plain, invariant=False)
