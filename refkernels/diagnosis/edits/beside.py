"""What a program that narrows a result answers, beside midpoints too.

A kernel's own result lies some units beside ours, so near a midpoint it may be rounded to the other
neighbour. Readings with the results moved to either side show which elements of an output that
would change; nothing is claimed there.
"""

from __future__ import annotations

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.contexts.doubles import Doubles
from refkernels.contexts.value import Value
from refkernels.contexts.working import RoundedValue, data
from refkernels.diagnosis.hypothesis import moved
from refkernels.diagnosis.problem import Answer, Problem
from refkernels.diagnosis.variants import formulas as other_formulas
from refkernels.ops.formula import Formula
from refkernels.ops.function_formulas import definition

_UNITS = 8.0  # of the working format: how far a kernel's result may lie beside ours


class _Beside(Doubles):
    """NumPy's float64, in which a number is moved by the relative `nudge` before it is narrowed."""

    def __init__(self, nudge: float) -> None:
        super().__init__()
        self.nudge = nudge

    def narrow(self, a: Value, format: str) -> RoundedValue:
        return super().narrow(self.value(data(a) * (1.0 + self.nudge)), format)


def answer(problem: Problem, formula: Formula, whole: Formula) -> Answer:
    """The answer of a formula that narrows a result, where rounding in its steps cannot change it.
    Its other errors are those of the `whole` formula, which does not narrow it."""
    question = problem.direction, formula, problem.inputs, problem.params
    reach = _UNITS * formats.working_format(problem.format).u
    readings = [
        definition(problem.op).computed(*question, formats.BINARY64, _Beside(nudge))
        for nudge in (0.0, -reach, reach)
    ]
    values, *beside = ({n: to_float64(a) for n, a in reading.items()} for reading in readings)
    right = other_formulas.answer(problem, whole)
    parts = [
        moved(
            problem,
            name,
            value,
            np.maximum(*(np.abs(other[name] - value) for other in beside)),
            about=right,
        )
        for name, value in values.items()
    ]
    reference, bound, plain = (
        {name: array for part in parts for name, array in getattr(part, field).items()}
        for field in ("reference", "bound", "plain")
    )
    return Answer(reference, bound, plain, invariant=False)
