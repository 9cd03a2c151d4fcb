"""An answer of LayerNorm, with the bound and the condition numbers computed from it.

The oracle runs once: the rows' statistics come from the same pass.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify
from refkernels.layernorm_ref import bounds, oracle, properties
from refkernels.layernorm_ref.arguments import RowProblem, prepare


@dataclass(frozen=True)
class LayerNormSolution:
    """The certified outputs or gradients, with their bound: a `refkernels.op.Solution`."""

    problem: RowProblem
    answer: Any

    @cached_property
    def statistics(self) -> oracle.Statistics:
        return oracle.statistics_of(self.problem)

    @with_default_fenv
    def bound(self, format: Format) -> Any:
        if self.problem.dy is None:
            return bounds.bound_of_forward(self.problem, self.statistics, format)
        return bounds.bound_of_backward(self.problem, self.answer, self.statistics, format)

    @with_default_fenv
    def condition(self) -> Any:
        backward = self.problem.dy is not None
        of = properties.condition_of_backward if backward else properties.condition_of_forward
        return of(self.problem, self.answer, self.statistics)


@with_default_fenv
def solution(*, certify: Certify, **arguments: Any) -> LayerNormSolution:
    """`oracle.forward`, or `oracle.backward` where dy is given, with what follows from it."""
    problem = prepare(**arguments)
    return LayerNormSolution(problem, oracle.solve(problem, certify))
