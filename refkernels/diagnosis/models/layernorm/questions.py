"""Variants of LayerNorm that are evaluated in float64 (`rowwise`): other axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.models.layernorm import rowwise
from refkernels.diagnosis.problem import Arrays, Problem


def wrong_axes(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Normalised over the rows' axis, over the last two axes, or over everything."""
    if problem.direction == "backward":
        return
    x = problem.inputs["x"].astype(np.float64)
    rows = rowwise.of(problem, outputs)
    normalized = tuple(range(x.ndim - len(rowwise.normalized_shape(problem)), x.ndim))
    choices = {(0,), (x.ndim - 2, x.ndim - 1), tuple(range(x.ndim)), (x.ndim - 1,)}
    for axes in sorted(axes for axes in choices if x.ndim > 1 and axes != normalized):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            mean = x.mean(axis=axes, keepdims=True)
            variance = np.square(x - mean).mean(axis=axes, keepdims=True)
            rstd = 1.0 / np.sqrt(variance + rows.eps)
            xhat = ((x - mean) * rstd).reshape(-1, rows.n)
            terms = ((np.abs(x) + np.abs(mean)) * rstd).reshape(-1, rows.n)
            values = xhat * rows.weight + rows.bias
            size = terms * np.abs(rows.weight) + np.abs(rows.bias)
        yield rowwise.variant("wrong_axes", {"axes": list(axes)}, problem, "y", values, size)
