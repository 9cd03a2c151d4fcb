"""Diagnosis's knowledge of one op, beyond its `Op` record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Algorithms, Candidate, Claim, Questions
from refkernels.diagnosis.problem import Array, Problem


@dataclass(frozen=True)
class Known:
    """Sources of hypotheses for one op, and a way to run its models again.

    questions       other questions that its kernels have answered
    algorithms      models of its algorithms
    rounded         those that merely round, if badly: not asked where errors are larger (`reach`)
    errors          claims from the places and sizes of an output's errors (elementwise ops)
    run             the bits that a candidate's model gives, in the shape of an output
    rows            the number of rows to which a probe extends a smaller matrix
    """

    questions: tuple[Questions, ...] = ()
    algorithms: tuple[Algorithms, ...] = ()
    rounded: tuple[Algorithms, ...] = ()
    errors: Callable[[Problem, str, Array, Fit], list[Claim]] | None = None
    run: Callable[[Problem, Candidate, Array], Array | None] | None = None
    rows: int = 0
