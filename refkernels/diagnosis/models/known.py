"""Diagnosis's knowledge of one op, beyond its `Op` record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Algorithms, Candidate, Claim, Questions
from refkernels.diagnosis.overflow import Logarithms
from refkernels.diagnosis.problem import Array, Doubles, Problem


@dataclass(frozen=True)
class Known:
    """Sources of hypotheses for one op, and a way to run its models again.

    questions       other questions that its kernels have answered
    algorithms      models of its algorithms
    errors          claims from the places and sizes of an output's errors (elementwise ops)
    intermediates   binary logarithms of intermediates that may overflow (elementwise ops)
    specials        the claim that explains NaN and infinities (other ops)
    run             the bits that a candidate's model gives, in the shape of an output
    rows            the number of rows to which a probe extends a smaller matrix
    """

    questions: tuple[Questions, ...] = ()
    algorithms: tuple[Algorithms, ...] = ()
    errors: Callable[[Problem, str, Array, Fit], list[Claim]] | None = None
    intermediates: Logarithms = field(default_factory=dict)
    specials: Callable[[Problem, str, Doubles, Array], Claim | None] | None = None
    run: Callable[[Problem, Candidate, Array], Array | None] | None = None
    rows: int = 0
