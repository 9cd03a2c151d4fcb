"""Functions of one variable: causes that the places and sizes of their errors suggest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import models
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Claim
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.wrong import FEW, faithful, pattern, wrong_elements


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """The op's known patterns of errors; where none fits, a fast approximation."""
    known = models.of(problem.op)
    for name, got in outputs.items():
        if not problem.op.function or fits[name].ordinary:
            continue
        claims = known.errors(problem, name, got, fits[name]) if known.errors else []
        yield from claims
        outcomes = [claim.prediction.outcome for claim in claims]
        if all(outcome is not None and not outcome.fits for outcome in outcomes):
            yield from _fast_approximation(problem, name, got)


def _fast_approximation(problem: Problem, name: str, got: Array) -> list[Claim]:
    """A fast approximation, where errors are spread over ordinary arguments, beyond the limit but
    small: every normal value has at least half of the working precision's digits right. A few wrong
    elements may be accidents, unless they are next to the exact values: a function that must be
    rounded correctly, such as sqrt, has its limit there."""
    exact, wide = np.asarray(problem.truth.reference[name]), to_float64(got)
    wrong = wrong_elements(problem, name, got)
    few = np.count_nonzero(wrong) <= max(1, int(FEW * got.size))
    if few and not faithful(problem, name, got)[wrong].all():
        return []
    if not wrong.any() or not np.isfinite(wide[np.isfinite(exact)]).all():
        return []
    normal = np.isfinite(exact) & (np.abs(exact) >= problem.format.min_normal)
    scale = np.maximum(np.abs(exact[normal]), np.minimum(1.0, np.abs(exact[normal]).max(initial=0)))
    error = np.abs(wide[normal] - exact[normal])
    if not normal.any() or np.any(error > math.sqrt(problem.format.u) * scale):
        return []
    return [pattern("fast_approximation", name, wrong, {})]
