"""Variants of LayerNorm: another place for eps, another variance, other axes.

They are evaluated in float64 (`rowwise`), with s = (v n / (n - 1) + eps)^(-1/2),
1 / (sqrt(v) + eps), ... in place of rstd.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.models.layernorm import rowwise
from refkernels.diagnosis.models.layernorm.rowwise import Rows
from refkernels.diagnosis.problem import Arrays, Problem


def other_deviations(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The sum of squares divided by n - 1, eps added to the deviation, or both. Each with the
    gradient of its own forward pass, and with LayerNorm's, which a kernel may keep."""
    rows = rowwise.of(problem, outputs)
    for unbiased, outside in ((True, False), (False, True), (True, True)):
        divisor = rows.n - unbiased
        if divisor < 1:
            continue
        with np.errstate(all="ignore"):
            deviation = np.sqrt(rows.variance * (rows.n / divisor))
            root = deviation + rows.eps if outside else np.sqrt(np.square(deviation) + rows.eps)
            rstd, factor = 1.0 / root, rows.n / divisor * (root / deviation if outside else 1.0)
        cause = "unbiased_variance" if unbiased else "eps_outside_sqrt"
        details: dict[str, object] = {"divisor": divisor} if unbiased else {}
        if unbiased and outside:
            details["with"] = "eps_outside_sqrt"
        yield from rowwise.variants(cause, details, problem, rows, rstd)
        if problem.direction == "backward" and "dx" in rows.asked:
            with np.errstate(all="ignore"):
                values, sizes = rowwise.backward(rows, rows.mean, rstd, through_root=factor)["dx"]
            yield rowwise.variant(cause, details, problem, "dx", values, sizes)


def other_gradients(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """dx with the mean, the variance or both as constants, or without the weight."""
    if problem.direction == "forward":
        return
    rows = rowwise.of(problem, outputs)
    unweighted = replace(rows, weight=np.ones_like(rows.weight))
    constant: dict[str, dict[str, Any]] = {
        "constant_statistics": {"through_mean": 0, "through_root": 0.0},
        "constant_mean": {"through_mean": 0},
        "constant_variance": {"through_root": 0.0},
    }
    kinds: list[tuple[str, Rows, dict[str, Any]]] = [
        *((cause, rows, options) for cause, options in constant.items()),
        ("weight_missing_in_dx", unweighted, {}),
    ]
    for cause, asked, options in kinds:
        with np.errstate(all="ignore"):
            values, sizes = rowwise.backward(asked, rows.mean, rows.rstd, **options)["dx"]
        yield rowwise.variant(cause, {}, problem, "dx", values, sizes)


def other_norm(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """RMS norm, which subtracts no mean, in place of LayerNorm."""
    rows = rowwise.of(problem, outputs)
    with np.errstate(all="ignore"):
        rstd = 1.0 / np.sqrt(np.square(rows.x).mean(axis=1, keepdims=True) + rows.eps)
    zero = np.zeros_like(rstd)
    if problem.direction == "forward":
        only_y = replace(rows, asked=set(rows.asked) & {"y"})
        yield from rowwise.variants("mean_not_subtracted", {}, problem, only_y, rstd, zero)
        return
    with np.errstate(all="ignore"):
        arrays = rowwise.backward(rows, zero, rstd, through_mean=0)
    for output, (values, sizes) in arrays.items():
        if output in rows.asked:
            yield rowwise.variant("mean_not_subtracted", {}, problem, output, values, sizes)


def weight_plus_one(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """1 + weight in place of weight."""
    if problem.inputs.get("weight") is None:
        return
    rows = rowwise.of(problem, outputs)
    raised = replace(rows, weight=rows.weight + 1.0, asked=set(rows.asked) & {"y", "dx"})
    yield from rowwise.variants("weight_plus_one", {}, problem, raised, rows.rstd)


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
