"""An answer of LayerNorm, with the bound and the condition numbers computed from it.

The oracle runs once: the rows' statistics come from the same pass.
"""

from dataclasses import dataclass
from typing import Any

from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify, Question
from refkernels.layernorm_ref import bounds, properties
from refkernels.layernorm_ref.arguments import prepare
from refkernels.layernorm_ref.oracle import Solved, solve_backward, solve_forward


@dataclass(frozen=True)
class LayerNormSolution:
    """The certified outputs or gradients, with their bound: a `refkernels.op.Solution`."""

    solved: Solved[Any]

    @property
    def answer(self) -> Any:
        return self.solved.answer

    @with_default_fenv
    def bound(self, format: Format) -> Any:
        problem, answer, statistics = self.solved.problem, self.answer, self.solved.statistics
        if problem.dy is None:
            return bounds.bound_of_forward(problem, statistics, format)
        return bounds.bound_of_backward(problem, answer, statistics, format)

    @with_default_fenv
    def condition(self) -> Any:
        backward = self.solved.problem.dy is not None
        of = properties.condition_of_backward if backward else properties.condition_of_forward
        return of(self.solved.problem, self.answer, self.solved.statistics)


@with_default_fenv
def solution(*, certify: Certify, **arguments: Any) -> LayerNormSolution:
    """`oracle.forward`, or `oracle.backward` where dy is given, with what follows from it."""
    solve: Any = solve_backward if "dy" in arguments else solve_forward
    return LayerNormSolution(solve(prepare(**arguments), Question.parse(certify)))
