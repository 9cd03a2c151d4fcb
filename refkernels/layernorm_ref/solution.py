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
class LayerNormForward:
    """The certified y, mean and rstd, with their bound: a `refkernels.op.Solution`."""

    solved: Solved[Forward]

    @property
    def answer(self) -> Forward:
        return self.solved.answer

    @with_default_fenv
    def bound(self, format: Format) -> ForwardArrays:
        return bounds.bound_of_forward(self.solved.problem, self.solved.statistics, format)

    @with_default_fenv
    def condition(self) -> ForwardArrays:
        solved = self.solved
        return properties.condition_of_forward(solved.problem, solved.answer, solved.statistics)


@dataclass(frozen=True)
class LayerNormBackward:
    """The certified dx, dweight and dbias, with their bound: a `refkernels.op.Solution`."""

    solved: Solved[Backward]

    @property
    def answer(self) -> Backward:
        return self.solved.answer

    @with_default_fenv
    def bound(self, format: Format) -> BackwardArrays:
        solved = self.solved
        return bounds.bound_of_backward(solved.problem, solved.answer, solved.statistics, format)

    @with_default_fenv
    def condition(self) -> BackwardArrays:
        solved = self.solved
        return properties.condition_of_backward(solved.problem, solved.answer, solved.statistics)


@with_default_fenv
def forward(*, certify: Certify, **arguments: Any) -> LayerNormForward:
    """`oracle.forward`, with the bound and condition numbers; arguments by name."""
    return LayerNormForward(solve_forward(prepare(**arguments), Question.parse(certify)))


@with_default_fenv
def backward(dy: Any, *, certify: Certify, **arguments: Any) -> LayerNormBackward:
    """`oracle.backward`, with the bound and condition numbers; arguments by name."""
    return LayerNormBackward(solve_backward(prepare(dy=dy, **arguments), Question.parse(certify)))
