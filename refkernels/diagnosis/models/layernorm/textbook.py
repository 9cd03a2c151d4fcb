"""LayerNorm as textbooks and ports write it, with digits lost: one recipe for each.

A recipe is the honest algorithm (two passes, (x - mean) rstd weight + bias, sums in order, every
operation rounded to the working precision) with one thing changed. Backward:
    t = dy weight,  dx = rstd ((t - mean(t)) - xhat mean(t xhat)),
    dweight = sum dy xhat,  dbias = sum dy
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.models.layernorm.model import Array, LayerNormTask, of_task
from refkernels.layernorm_ref.algorithms import moments

Rounding = Callable[[Array], Array]


@dataclass(frozen=True)
class Recipe:
    """The differences from the honest algorithm.

    variance     of `layernorm_ref.algorithms`: "naive", "naive_clamped", "two_pass", "welford", ...
                 or "naive_pairwise": E[x^2] - E[x]^2 by NumPy's pairwise sums, clamped at 0
    form         "centred" (x - mean) rstd, "folded" x rstd + (-rstd mean), "divided"
                 (x - mean) / sqrt(var + eps), "rsqrt": rstd rounded once from float64
    eps          the format that eps is rounded to; None: the working precision
    statistics   the format that mean and variance are computed in
    working      the format that everything is computed in
    sums         "flush": every result that is subnormal becomes 0; "narrow": every partial sum is
                 rounded to the 16-bit format
    only         the formats that the recipe applies to; empty: all
    """

    variance: str = "two_pass"
    form: Literal["centred", "folded", "divided", "rsqrt"] = "centred"
    eps: Format | None = None
    statistics: Format | None = None
    working: Format | None = None
    sums: Literal["plain", "flush", "narrow"] = "plain"
    only: tuple[Format, ...] = ()


@dataclass(frozen=True)
class _RowStatistics:
    mean: Array  # (rows, 1), as are the others
    rstd: Array
    root: Array  # what x - mean is divided by


def _flush(values: Array) -> Array:
    subnormal = (np.abs(values) < np.finfo(values.dtype).tiny) & (values != 0)
    return np.where(subnormal, np.copysign(0, values), values) if subnormal.any() else values


def _unchanged(values: Array) -> Array:
    return values


def _rounding(recipe: Recipe, task: LayerNormTask) -> tuple[Rounding, Rounding]:
    """The further rounding of a result, and of a partial sum, beyond that to their dtype."""
    if recipe.sums == "flush":
        return _flush, _flush
    return _unchanged, task.stored if recipe.sums == "narrow" else _unchanged


def _sum(values: Array, axis: int, recipe: Recipe, rounded: Rounding) -> Array:
    """The sum over an axis in order; the axis stays, with length 1."""
    terms = rounded(values)
    if recipe.sums != "narrow":
        partial = np.add.accumulate(terms, axis=axis, dtype=terms.dtype)
        if rounded(partial) is partial:  # no partial sum is changed
            return partial[:, -1:] if axis == 1 else partial[-1:]
    columns = np.moveaxis(terms, axis, 0)
    total = columns[0]
    for column in columns[1:]:
        total = rounded(total + column)
    return np.expand_dims(total, axis)


def _moments(task: LayerNormTask, recipe: Recipe) -> tuple[Array, Array]:
    """Mean and variance of the rows, (rows, 1), in the precision of their computation."""
    rounded, partial = _rounding(recipe, task)
    target = recipe.statistics
    x = task.x if target is None else formats.cast(task.x, target)
    n = x.shape[1]
    if recipe.variance == "naive_pairwise":  # NumPy's own sums along contiguous rows
        mean = np.sum(x, axis=1, keepdims=True) / x.dtype.type(n)
        square = np.sum(x * x, axis=1, keepdims=True) / x.dtype.type(n)
        return mean, np.maximum(square - mean * mean, x.dtype.type(0))
    if recipe.variance != "two_pass":
        mean, var = moments(x, recipe.variance)
        return mean[:, None], var[:, None]
    x = rounded(x)
    mean = rounded(_sum(x, 1, recipe, partial) / x.dtype.type(n))
    deviation = rounded(x - mean)
    squares = _sum(rounded(deviation * deviation), 1, recipe, partial)
    return mean, rounded(squares / x.dtype.type(n))


def _statistics(task: LayerNormTask, recipe: Recipe) -> _RowStatistics:
    mean, var = (values.astype(task.kind) for values in _moments(task, recipe))
    eps = np.asarray(task.eps)
    eps = (formats.cast(eps, recipe.eps) if recipe.eps else eps).astype(task.kind)
    root = np.sqrt(var + eps)
    rstd = task.kind(1) / root
    if recipe.form == "rsqrt":
        rstd = (1.0 / np.sqrt((var + eps).astype(np.float64))).astype(task.kind)
    return _RowStatistics(mean, rstd, root)


def _normalised(task: LayerNormTask, recipe: Recipe, statistics: _RowStatistics) -> Array:
    rounded = _rounding(recipe, task)[0]
    if recipe.form == "folded":
        return task.x * statistics.rstd + (-statistics.rstd * statistics.mean)
    if recipe.form == "divided":
        return (task.x - statistics.mean) / statistics.root
    return rounded(rounded(rounded(task.x) - statistics.mean) * statistics.rstd)


def _forward(task: LayerNormTask, recipe: Recipe) -> dict[str, Array]:
    rounded = _rounding(recipe, task)[0]
    statistics = _statistics(task, recipe)
    scaled = rounded(_normalised(task, recipe, statistics) * task.scale)
    return task.answer(y=rounded(scaled + task.shift), mean=statistics.mean, rstd=statistics.rstd)


def _backward(task: LayerNormTask, recipe: Recipe) -> dict[str, Array]:
    rounded, partial = _rounding(recipe, task)
    statistics = _statistics(task, recipe)
    xhat = _normalised(task, recipe, statistics)
    dy = rounded(task.cotangent)
    dweight = _sum(rounded(dy * xhat), 0, recipe, partial)
    dbias = _sum(dy, 0, recipe, partial)
    t = rounded(dy * task.scale)
    n = task.kind(task.x.shape[1])
    of_t = rounded(_sum(t, 1, recipe, partial) / n)
    of_product = rounded(_sum(rounded(t * xhat), 1, recipe, partial) / n)
    inner = rounded(rounded(t - of_t) - rounded(xhat * of_product))
    return task.gradients(rounded(statistics.rstd * inner), dweight, dbias)


def _recast(task: LayerNormTask, working: Format) -> LayerNormTask:
    """The task in another working precision; the format of its answers stays."""

    def cast(values: Array | None) -> Array | None:
        return None if values is None else formats.cast(values, working)

    return replace(
        task,
        x=formats.cast(task.x, working),
        dy=cast(task.dy),
        weight=cast(task.weight),
        bias=cast(task.bias),
    )


@of_task
def run(recipe: Recipe, task: LayerNormTask, forward: bool) -> dict[str, Array]:
    """The answers of a kernel that follows the recipe; empty where it does not apply."""
    if recipe.only and task.format not in recipe.only:
        return {}
    if recipe.working is not None:
        task = _recast(task, recipe.working)
    return (_forward if forward else _backward)(task, recipe)


def runner(**changes: Any) -> Callable[..., dict[str, Array]]:
    """`run` of the recipe with these changes."""
    return functools.partial(run, Recipe(**changes))


NARROW = (formats.BINARY16, formats.BFLOAT16)
DOUBLE = (formats.BINARY64,)
