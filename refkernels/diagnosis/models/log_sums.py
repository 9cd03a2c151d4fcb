"""log_softmax = x - max(x) - log(sum) with an inexact logarithm: one error for each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Claim, Outcome, Prediction
from refkernels.diagnosis.problem import Arrays, Problem

_LEAST = 4  # elements of a row: fewer agree by chance


def off_by_rows(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """Rows in which every element has the same error, up to the bound, where some element is
    beyond it."""
    for name, got in outputs.items():
        axis = problem.params.get("axis", -1)
        rows = got.ndim and got.shape[axis] >= _LEAST
        if problem.direction != "forward" or fits[name].fine or not rows:
            continue
        exact = np.asarray(problem.truth.reference[name])
        bound = np.broadcast_to(problem.truth.bound[name], exact.shape)
        wide = to_float64(got)
        if not (np.isfinite(wide) & np.isfinite(exact)).all():
            continue
        error = wide - exact
        shift = np.median(error, axis=axis, keepdims=True)
        remaining = np.abs(error - shift)
        beyond = (np.abs(error) > bound).any(axis=axis, keepdims=True)
        fits_all = bool((remaining <= bound).all() and beyond.any())
        equal = int(np.count_nonzero(remaining <= bound))
        largest = float(np.max(remaining / np.maximum(bound, np.finfo(np.float64).tiny)))
        outcome = Outcome(fits_all, equal, got.size, largest)
        details = {"error": float(f"{np.max(np.abs(shift)):.2g}")}
        yield Claim("inexact_logarithm", name, Prediction(outcome=outcome), details)
