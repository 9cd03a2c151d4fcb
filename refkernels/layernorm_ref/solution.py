"""An answer of LayerNorm with the bound and the condition numbers that follow from it: the oracle
has run once, and what they need of the rows' statistics comes of the same pass."""

from dataclasses import dataclass
from typing import Any

from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import in_default_mode
from refkernels.arithmetic.question import Certify, Question
from refkernels.layernorm_ref import bounds, properties
from refkernels.layernorm_ref.arguments import prepare
from refkernels.layernorm_ref.oracle import (
    Backward,
    BackwardArrays,
    Forward,
    ForwardArrays,
    Solved,
    solve_backward,
    solve_forward,
)


@dataclass(frozen=True)
class ForwardSolution:
    """A `refkernels.op.Solution`."""

    solved: Solved[Forward]

    @property
    def answer(self) -> Forward:
        return self.solved.answer

    @in_default_mode
    def bound(self, format: Format) -> ForwardArrays:
        return bounds.bound_of_forward(self.solved.problem, self.solved.statistics, format)

    @in_default_mode
    def condition(self) -> ForwardArrays:
        solved = self.solved
        return properties.condition_of_forward(solved.problem, solved.answer, solved.statistics)


@dataclass(frozen=True)
class BackwardSolution:
    """A `refkernels.op.Solution`."""

    solved: Solved[Backward]

    @property
    def answer(self) -> Backward:
        return self.solved.answer

    @in_default_mode
    def bound(self, format: Format) -> BackwardArrays:
        solved = self.solved
        return bounds.bound_of_backward(solved.problem, solved.answer, solved.statistics, format)

    @in_default_mode
    def condition(self) -> BackwardArrays:
        solved = self.solved
        return properties.condition_of_backward(solved.problem, solved.answer, solved.statistics)


@in_default_mode
def forward(*, certify: Certify, **given: Any) -> ForwardSolution:
    """`oracle.forward`, with what follows from it; arguments by name."""
    return ForwardSolution(solve_forward(prepare(**given), Question.parse(certify)))


@in_default_mode
def backward(dy: Any, *, certify: Certify, **given: Any) -> BackwardSolution:
    """`oracle.backward`, with what follows from it; arguments by name."""
    return BackwardSolution(solve_backward(prepare(dy=dy, **given), Question.parse(certify)))
