"""Variants of LayerNorm: another eps or another place for it, another variance, other axes.

Where the oracle can be asked (another eps), it is. The others are evaluated here in float64, from
the mean m and the variance v of each row:
    y = d s weight + bias,   dx = s (t - mean(t) - d s^2 mean(t d)),   t = dy weight, d = x - m
with s = (v n / (n - 1) + eps)^(-1/2), 1 / (sqrt(v) + eps), ... in the place of rstd.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from refkernels.diagnosis.fit import fit
from refkernels.diagnosis.hypothesis import Variant, moved
from refkernels.diagnosis.problem import Arrays, Doubles, Problem
from refkernels.metrology import UNUSUAL

USUAL_EPS = (1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 0.0)
_DIGITS = (1, 2, 3, 5, 8)
_CHANCE = 2.0**-4  # that an eps of no meaning has so few digits, at most
_FLOAT64 = 2.0**-48  # relative to the terms: what a few float64 operations in a row may lose


@dataclass(frozen=True)
class _Rows:
    """The question as rows: x, dy (R, n), weight and bias (n,), m and v (R, 1)."""

    x: Doubles
    dy: Doubles | None
    weight: Doubles
    bias: Doubles
    mean: Doubles
    variance: Doubles
    eps: float

    @property
    def n(self) -> int:
        return self.x.shape[1]

    @property
    def rstd(self) -> Doubles:
        result: Doubles = 1.0 / np.sqrt(self.variance + self.eps)
        return result


def _rows(problem: Problem) -> _Rows:
    x = problem.inputs["x"].astype(np.float64)
    shape = _normalized(problem)
    n = math.prod(shape)
    rows = x.reshape(-1, n)
    weight, bias = problem.inputs.get("weight"), problem.inputs.get("bias")
    dy = problem.inputs.get("dy") if problem.direction == "backward" else None
    with np.errstate(over="ignore", invalid="ignore"):  # x near the end of float64's range
        mean = rows.mean(axis=1, keepdims=True)
        variance = np.square(rows - mean).mean(axis=1, keepdims=True)
    return _Rows(
        rows,
        None if dy is None else dy.astype(np.float64).reshape(-1, n),
        np.ones(n) if weight is None else weight.astype(np.float64).reshape(-1),
        np.zeros(n) if bias is None else bias.astype(np.float64).reshape(-1),
        mean,
        variance,
        float(problem.params.get("eps", problem.op.params["eps"])),
    )


def _normalized(problem: Problem) -> tuple[int, ...]:
    given = problem.params.get("normalized_shape")
    if given is None:
        return problem.inputs["x"].shape[-1:]
    return (int(given),) if isinstance(given, int) else tuple(given)


def other_eps(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """eps rounded to float32 (in float64), and every usual eps that would have been noticed."""
    if problem.op.name != "layernorm":
        return
    rows = _rows(problem)
    narrow = float(np.float32(rows.eps))
    if problem.format.name == "float64" and narrow != rows.eps:
        yield Variant("eps_rounded", {"eps": narrow}, problem.ask(params={"eps": narrow}))
    for eps in USUAL_EPS:
        if eps == rows.eps or not _noticed(problem, rows, eps):
            continue
        if eps == 0.0 and not rows.variance.all():
            continue
        if problem.format.name == "float64":
            yield Variant("eps_differs", {"eps": eps}, problem.ask(params={"eps": eps}))
        else:  # float64 tells it well enough, and in far less time
            yield from _with_rstd("eps_differs", {"eps": eps}, problem, rows, _rstd(rows, eps))


def fitted_eps(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """An eps that is none of the usual ones, found from y: the rstd of each row by least squares
    from y - bias = rstd (x - m) weight, then eps = rstd^-2 - v, the rows of little variance, which
    tell most, weighing most. Given in the fewest digits that make y ordinary; `fitted` where they
    are no fewer than another cause would need, and only where rows of unequal variance agree."""
    if problem.op.name != "layernorm" or problem.direction == "backward" or "y" not in outputs:
        return
    got, rows = outputs["y"], _rows(problem)
    if got.shape != problem.truth.reference["y"].shape or not np.isfinite(got).all():
        return
    t = (rows.x - rows.mean) * rows.weight
    with np.errstate(all="ignore"):
        rstd = np.sum((got.reshape(t.shape) - rows.bias) * t, 1) / np.sum(t * t, 1)
        found = rstd**-2.0 - rows.variance[:, 0]
        weights = (rows.variance[:, 0] + rows.eps) ** -2.0
    usable = np.isfinite(found) & np.isfinite(weights) & (rstd > 0)
    if not usable.any():
        return
    best = float(np.sum((weights * found)[usable]) / np.sum(weights[usable]))
    if best <= 0.0 or not _noticed(problem, rows, best):
        return
    least = float(np.min(rows.variance)) + max(best, rows.eps)
    width = 4.0 * UNUSUAL * problem.format.u * least / best  # of rstd's own errors, 2 for the root
    uneven = float(np.max(rows.variance)) > 2.0 * least
    for digits in _DIGITS:
        eps = float(f"{best:.{digits - 1}e}")
        chance = 9 * 10 ** (digits - 1) * width > _CHANCE
        if eps in (rows.eps, *USUAL_EPS) or (chance and not uneven):
            continue
        details: dict[str, object] = {"eps": eps, **({"fitted": True} if chance else {})}
        variant = next(_with_rstd("eps_differs", details, problem, rows, _rstd(rows, eps)))
        variant = replace(variant, trials=_DIGITS.index(digits) + 1, parameters=1)
        result = fit(problem, "y", got, variant.answer)
        if result is not None and result.ordinary:
            yield variant
            return


def _rstd(rows: _Rows, eps: float) -> Doubles:
    result: Doubles = 1.0 / np.sqrt(rows.variance + eps)
    return result


def _noticed(problem: Problem, rows: _Rows, eps: float) -> bool:
    """Whether another eps moves rstd by more than rounding in some row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.abs(eps - rows.eps) / (rows.variance + max(eps, rows.eps))
    return bool(np.nanmax(change, initial=0.0) > 4.0 * problem.format.u)


def unbiased_variance(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The sum of squares divided by n - 1."""
    if problem.op.name != "layernorm":
        return
    rows = _rows(problem)
    if rows.n < 2:
        return
    rstd = 1.0 / np.sqrt(rows.variance * (rows.n / (rows.n - 1)) + rows.eps)
    yield from _with_rstd("unbiased_variance", {"divisor": rows.n - 1}, problem, rows, rstd)


def eps_outside_sqrt(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """eps added to the standard deviation: 1 / (sqrt(v) + eps)."""
    if problem.op.name != "layernorm":
        return
    rows = _rows(problem)
    with np.errstate(divide="ignore"):
        rstd = 1.0 / (np.sqrt(rows.variance) + rows.eps)
    if np.isfinite(rstd).all():
        yield from _with_rstd("eps_outside_sqrt", {}, problem, rows, rstd)


def constant_statistics(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Mean and variance treated as constants in the backward pass: dx = dy weight rstd."""
    if problem.op.name != "layernorm" or problem.direction == "forward":
        return
    rows = _rows(problem)
    assert rows.dy is not None
    values = rows.dy * rows.weight * rows.rstd
    yield _variant("constant_statistics", {}, problem, "dx", values, np.abs(values))


def wrong_axes(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Normalised over the rows' axis, over the last two axes, or over everything."""
    if problem.op.name != "layernorm" or problem.direction == "backward":
        return
    x = problem.inputs["x"].astype(np.float64)
    rows = _rows(problem)
    right = tuple(range(x.ndim - len(_normalized(problem)), x.ndim))
    choices = {(0,), (x.ndim - 2, x.ndim - 1), tuple(range(x.ndim)), (x.ndim - 1,)}
    for axes in sorted(axes for axes in choices if x.ndim > 1 and axes != right):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            mean = x.mean(axis=axes, keepdims=True)
            variance = np.square(x - mean).mean(axis=axes, keepdims=True)
            xhat = (x - mean) / np.sqrt(variance + rows.eps)
        shape = (-1, rows.n)
        values = xhat.reshape(shape) * rows.weight + rows.bias
        size = (
            np.abs(xhat.reshape(shape) * rows.weight) + np.abs(rows.bias) + np.max(np.abs(values))
        )
        yield _variant("wrong_axes", {"axes": list(axes)}, problem, "y", values, size)


def _with_rstd(
    cause: str, details: dict[str, object], problem: Problem, rows: _Rows, rstd: Doubles
) -> Iterator[Variant]:
    """The outputs where something else stands in the place of rstd."""
    centred = rows.x - rows.mean
    xhat = centred * rstd
    if problem.direction == "forward":
        scaled = xhat * rows.weight
        sizes = np.abs(scaled) + np.abs(rows.bias) + np.abs(rows.mean * rstd * rows.weight)
        yield _variant(cause, details, problem, "y", scaled + rows.bias, sizes)
        yield _variant(cause, details, problem, "rstd", rstd, np.abs(rstd))
        return
    assert rows.dy is not None
    t = rows.dy * rows.weight
    mean_t = t.mean(axis=1, keepdims=True)
    projection = (t * xhat).mean(axis=1, keepdims=True)
    dx = rstd * (t - mean_t - xhat * projection)
    sizes = rstd * (np.abs(t) + np.abs(mean_t) + np.abs(xhat * projection))
    yield _variant(cause, details, problem, "dx", dx, sizes)
    products = rows.dy * xhat
    yield _variant(
        cause, details, problem, "dweight", products.sum(axis=0), np.abs(products).sum(axis=0)
    )


def _variant(
    cause: str,
    details: dict[str, object],
    problem: Problem,
    output: str,
    values: Doubles,
    sizes: Doubles,
) -> Variant:
    shape = problem.truth.reference[output].shape
    spread = (sizes * _FLOAT64).reshape(shape)
    return Variant(cause, details, moved(problem, output, values.reshape(shape), spread))
