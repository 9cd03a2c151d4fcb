"""What diagnosis knows of one op, beyond what the op says itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Algorithms, Candidate, Claim, Questions
from refkernels.diagnosis.overflow import Logarithms
from refkernels.diagnosis.problem import Array, Doubles, Problem


@dataclass(frozen=True)
class Known:
    """Sources of hypotheses for one op, and how its models are run again.

    questions       other questions that its kernels have been seen to answer
    algorithms      models of its algorithms
    errors          of an elementwise op, what an output's errors say by their places and sizes
    intermediates   of an elementwise op, the binary logarithms of what may overflow
    specials        of any other op, what makes NaN and infinities
    run             the bits that a candidate's model gives, like an array of the output
    rows            to how many rows a probe extends a matrix of few
    """

    questions: tuple[Questions, ...] = ()
    algorithms: tuple[Algorithms, ...] = ()
    errors: Callable[[Problem, str, Array, Fit], list[Claim]] | None = None
    intermediates: Logarithms = field(default_factory=dict)
    specials: Callable[[Problem, str, Doubles, Array], Claim | None] | None = None
    run: Callable[[Problem, Candidate, Array], Array | None] | None = None
    rows: int = 0
