"""PyTorch's LayerNorm on a CPU (read at 2.x; reproduced at 2.13).

    rstd = 1 / sqrt(var + eps), mean and var as in `torch_moments`
    float32, float64   y = fma((x - mean) rstd, weight, bias), or fma(x - mean, rstd, bias) where
                       there is no weight
    16-bit             y = fma(fma(x, rstd, -rstd mean), weight, bias) in float32, rounded once;
                       mean and rstd are stored in the 16-bit format, and backward reads them there
Backward, a = rstd, per row:
    ds = sum dy x weight,  db = sum dy weight                 over vector lanes, see `_dot`
    b = fma(db, mean, -ds) a a a / n,  c = fma(-b, mean, -(db a / n))
    dx = fma(b, x, a dy weight) + c
    dweight += dy (a x - a mean),  dbias += dy      row after row, each thread its share of the
                                                    rows, each sum rounded to the format; then the
                                                    threads' sums in order
For a large mean b and c cancel each other: dx then has the error of c. The build for AVX-512 uses
the AVX2 kernel here (8 lanes of float32); that without vector instructions has the same lanes, no
FMA, and adds lanes one by one.

Source: aten/src/ATen/native/cpu/layer_norm_kernel.cpp, aten/src/ATen/cpu/vec/functional_base.h,
functional_bfloat16.h. Which operations are fused is the compiler's choice, found by comparing bits.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from refkernels.arithmetic.formats import BINARY16
from refkernels.arithmetic.jit import inner, njit
from refkernels.diagnosis.models.layernorm.model import Array, LayerNormTask, Model, of_task
from refkernels.diagnosis.models.layernorm.torch_moments import moments, multiply_add


@dataclass(frozen=True)
class Build:
    """How the kernel was compiled: the float32 lanes of a vector, with or without FMA."""

    lanes: int = 8
    fused: bool = True


@njit
def _normalise(
    x: Any, mean: Any, rstd: Any, weight: Any, scaled: bool, bias: Any, folded: bool, fused: bool,
    y: Any,
) -> None:  # fmt: skip
    for i in range(x.shape[0]):
        shift = -rstd[i] * mean[i]
        for j in range(x.shape[1]):
            if folded:
                xhat = multiply_add(x[i, j], rstd[i], shift, fused)
                y[i, j] = multiply_add(xhat, weight[j], bias[j], fused)
            elif scaled:
                xhat = (x[i, j] - mean[i]) * rstd[i]
                y[i, j] = multiply_add(xhat, weight[j], bias[j], fused)
            else:  # the compiler drops the product with 1 and fuses the one before it
                y[i, j] = multiply_add(x[i, j] - mean[i], rstd[i], bias[j], fused)


@inner
def _add_lanes(lane: Any, lanes: int, in_halves: bool) -> Any:
    """The sum of the lanes: in float32 with vector instructions by halves, else lane by lane."""
    total = lane[0]
    if not in_halves:
        for i in range(1, lanes):
            total += lane[i]
        return total
    half = lanes // 2
    while half:
        for i in range(half):
            lane[i] += lane[i + half]
        half //= 2
    return lane[0]


@inner
def _dot(a: Any, b: Any, lane: Any, lanes: int, in_halves: bool, fused: bool) -> Any:
    """sum a b: the lanes, one vector or two wide, add the products at l, l + width, ... each.

    Whole vectors of float32 and float64 add rounded products; 16-bit ones, and every last partial
    vector, add fused. Fewer products than a vector holds are added one by one.
    """
    width = lane.size
    for i in range(min(width, a.size)):
        lane[i] = a[i] * b[i]
    if a.size < width:
        for i in range(lanes, a.size):
            lane[i - lanes] = multiply_add(a[i], b[i], lane[i - lanes], fused)
        return _add_lanes(lane, min(a.size, lanes), False)
    whole = a.size - a.size % width if width == lanes else 0
    for i in range(width, a.size):
        lane[i % width] = multiply_add(a[i], b[i], lane[i % width], fused and i >= whole)
    for i in range(lanes, width):
        lane[i - lanes] += lane[i]
    return _add_lanes(lane, lanes, in_halves)


@njit
def _dots(a: Any, b: Any, lane: Any, lanes: int, in_halves: bool, fused: bool, sums: Any) -> None:
    """The rows' sums of a b; b has as many rows as a, or one for all."""
    for i in range(a.shape[0]):
        sums[i] = _dot(a[i], b[i % b.shape[0]], lane, lanes, in_halves, fused)


@njit
def _gradient(
    x: Any, dy: Any, weight: Any, mean: Any, rstd: Any, ds: Any, db: Any, fused: bool, dx: Any
) -> None:
    share = x.dtype.type(1) / x.dtype.type(x.shape[1])
    for i in range(x.shape[0]):
        a, m = rstd[i], mean[i]
        b = multiply_add(db[i], m, -ds[i], fused) * a * a * a * share
        c = multiply_add(-b, m, -(db[i] * a * share), fused)
        for j in range(x.shape[1]):
            dx[i, j] = multiply_add(b, x[i, j], a * dy[i, j] * weight[j], fused) + c


@njit
def _accumulate(x: Any, dy: Any, mean: Any, rstd: Any, fused: bool, total: Any) -> None:
    """Add dy xhat and dy of each row to the two sums, dweight's and dbias's."""
    for i in range(x.shape[0]):
        shift = -rstd[i] * mean[i]
        for j in range(x.shape[1]):
            xhat = multiply_add(rstd[i], x[i, j], shift, fused)
            total[0, j] = multiply_add(dy[i, j], xhat, total[0, j], fused)
            total[1, j] += dy[i, j]


def _statistics(task: LayerNormTask, build: Build) -> tuple[Array, Array]:
    lanes = build.lanes if task.kind is np.float32 else build.lanes // 2
    mean, var = moments(
        task.x,
        lanes=lanes,
        halves=2 if task.narrow else 1,
        fused=build.fused,
        fused_tail=build.fused and task.format == BINARY16,
    )
    return mean, task.kind(1) / np.sqrt(var + task.kind(task.eps))


def _forward(task: LayerNormTask, build: Build) -> dict[str, Array]:
    mean, rstd = _statistics(task, build)
    y = np.empty_like(task.x)
    scaled = task.weight is not None
    _normalise(task.x, mean, rstd, task.scale, scaled, task.shift, task.narrow, build.fused, y)
    return task.answer(y=y, mean=mean, rstd=rstd)


def _affine_gradients(
    task: LayerNormTask, mean: Array, rstd: Array, fused: bool
) -> tuple[Array, Array]:
    """dweight and dbias: the threads' shares of the rows one after the other, then their sums."""
    rows, n = task.x.shape
    share = max(1, -(-rows // task.threads))
    step = 1 if task.narrow else share  # rows between two roundings of a sum to the format
    total = np.zeros((2, n), task.kind)
    for first in range(0, rows, share):
        part = np.zeros((2, n), task.kind)
        last = min(first + share, rows)
        for i in range(first, last, step):
            chunk = slice(i, min(i + step, last))
            _accumulate(task.x[chunk], task.cotangent[chunk], mean[chunk], rstd[chunk], fused, part)
            part = task.stored(part)
        total += part
    return total[0], total[1]


def _row_sums(task: LayerNormTask, build: Build) -> tuple[Array, Array]:
    """ds and db of each row."""
    lanes = build.lanes if task.kind is np.float32 else build.lanes // 2
    lane = np.empty(lanes * (2 if task.narrow else 1), task.kind)
    in_halves = build.fused and task.kind is np.float32
    dy, weight = task.cotangent, task.scale[None, :]
    factors = (dy, task.x) if task.weight is None else (dy * task.x, weight)
    ds, db = np.empty((2, task.x.shape[0]), task.kind)
    _dots(*factors, lane, lanes, in_halves, build.fused, ds)
    _dots(dy, weight, lane, lanes, in_halves, build.fused, db)
    return ds, db


def _backward(task: LayerNormTask, build: Build) -> dict[str, Array]:
    mean, rstd = (task.stored(values) for values in _statistics(task, build))
    ds, db = _row_sums(task, build)
    dx = np.empty_like(task.x)
    _gradient(task.x, task.cotangent, task.scale, mean, rstd, ds, db, build.fused, dx)
    return task.gradients(dx, *_affine_gradients(task, mean, rstd, build.fused))


@of_task
def run(build: Build, task: LayerNormTask, forward: bool) -> dict[str, Array]:
    """PyTorch's answers; dweight and dbias depend on params["threads"]."""
    return (_forward if forward else _backward)(task, build)


_STATEMENT = (
    "PyTorch on a CPU: Welford's variance in {lanes} vector lanes and chunks of 16, merged as a "
    "cascade, {fma}."
)
MODELS = tuple(
    Model(
        name,
        None,
        _STATEMENT.format(lanes=build.lanes, fma="with FMA" if build.fused else "without FMA"),
        functools.partial(run, build),
    )
    for name, build in (
        ("torch CPU", Build()),
        ("torch CPU, no vector instructions", Build(fused=False)),
        ("torch CPU, 16 lanes", Build(lanes=16)),
    )
)
