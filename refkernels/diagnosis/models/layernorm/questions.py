"""Variants of LayerNorm: another eps or another place for it, another variance, other axes.

For a float64 kernel, the oracle answers another eps. All other variants are evaluated in float64
(`rowwise`), with s = (v n / (n - 1) + eps)^(-1/2), 1 / (sqrt(v) + eps), ... in place of rstd.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.diagnosis.fit import fit
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.models.layernorm import rowwise
from refkernels.diagnosis.models.layernorm.rowwise import Rows
from refkernels.diagnosis.problem import Arrays, Doubles, Problem
from refkernels.diagnosis.variants.formulas import USUAL_EPS
from refkernels.metrology import UNUSUAL

_DIGITS = (1, 2, 3, 5, 8)
_CHANCE = 2.0**-4  # the largest probability that a meaningless eps has so few digits


def other_eps(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """eps rounded to float32 (in float64), and every usual eps that makes a visible difference."""
    rows = rowwise.of(problem, outputs)
    narrow = float(np.float32(rows.eps))
    if problem.format.name == "float64" and narrow != rows.eps and math.isfinite(narrow):
        yield Variant("eps_rounded", {"eps": narrow}, problem.ask(params={"eps": narrow}))
    for eps in USUAL_EPS:
        if eps == rows.eps or not _visible(problem, rows, eps):
            continue
        if eps == 0.0 and not rows.variance.all():
            continue
        if problem.format.name == "float64":
            yield Variant("eps_differs", {"eps": eps}, problem.ask(params={"eps": eps}))
        else:  # float64 is accurate enough, and far faster
            yield from rowwise.variants(
                "eps_differs", {"eps": eps}, problem, rows, _rstd(rows, eps)
            )


def fitted_eps(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """An unusual eps, fitted to y: each row's rstd by least squares from y - bias = rstd (x - m)
    weight, then eps = rstd^-2 - v. Rows of little variance determine eps best, and weigh most. It
    has the fewest digits that make y ordinary. Where any value would have a number of so many
    digits near it, eps is `fitted`, and given only if the rows' variances are unequal."""
    if problem.direction == "backward" or "y" not in outputs:
        return
    got, rows = outputs["y"], rowwise.of(problem, outputs)
    if got.shape != problem.truth.reference["y"].shape:
        return
    with np.errstate(all="ignore"):
        t = (rows.x - rows.mean) * rows.weight
        rstd = np.sum((got.reshape(t.shape) - rows.bias) * t, 1) / np.sum(t * t, 1)
        solved = rstd**-2.0 - rows.variance[:, 0]
        weights = (rows.variance[:, 0] + rows.eps) ** -2.0
    usable = np.isfinite(solved) & np.isfinite(weights) & (rstd > 0)
    if not usable.any():
        return
    best = float(np.sum((weights * solved)[usable]) / np.sum(weights[usable]))
    if best <= 0.0 or not _visible(problem, rows, best):
        return
    variance = rows.variance[usable]
    least = float(np.min(variance)) + max(best, rows.eps)
    width = 4.0 * UNUSUAL * problem.format.u * least / best  # of rstd's own errors, 2 for the root
    uneven = float(np.max(variance)) > 2.0 * least
    for digits in _DIGITS:
        eps = float(f"{best:.{digits - 1}e}")
        chance = 9 * 10 ** (digits - 1) * width > _CHANCE
        if eps in (rows.eps, *USUAL_EPS) or (chance and not uneven):
            continue
        details: dict[str, object] = {"eps": eps, **({"fitted": True} if chance else {})}
        variant = next(rowwise.variants("eps_differs", details, problem, rows, _rstd(rows, eps)))
        variant = replace(variant, trials=_DIGITS.index(digits) + 1, parameters=1)
        result = fit(problem, "y", got, variant.answer)
        if result is not None and result.ordinary:
            yield variant
            return


def _rstd(rows: Rows, eps: float) -> Doubles:
    result: Doubles = 1.0 / np.sqrt(rows.variance + eps)
    return result


def _visible(problem: Problem, rows: Rows, eps: float) -> bool:
    """Whether another eps changes rstd by more than rounding in some row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.abs(eps - rows.eps) / (rows.variance + max(eps, rows.eps))
    return bool(np.nanmax(change, initial=0.0) > 4.0 * problem.format.u)


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
