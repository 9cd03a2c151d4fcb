"""PaddlePaddle's LayerNorm on a CPU (read at 3.x; reproduced at 3.3.1).

float32 and n >= 8, eight lanes: lane l adds the elements l, l + 8, ... in order; the last r < 8
elements go to lanes 8 - r .. 7; with s_l = v_l + v_{l + 4} the sum is (s0 + s1) + (s2 + s3), and a
mean is that sum times fl(1 / n).  Otherwise: sums in order, divided by n.
    y = (x - mean) / sqrt(var + eps), then times weight, then plus bias; nothing is fused
    dx = (t - mean(t) - xhat mean(t xhat)) / sqrt(var + eps), t = dy weight, sums in order, a mean
         being the sum times 1 / n, rounded once from double
eps is a float32 attribute: 1e-5 becomes 9.99999974738e-06, in float64 too.

Source: paddle/phi/kernels/{cpu/layer_norm_kernel.cc, cpu/layer_norm_grad_kernel.cc,
funcs/jit/more/intrinsic/layer_norm.cc, funcs/jit/refer/refer.h}.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.jit import njit
from refkernels.diagnosis.models.model import Array, Direction, Model, Task, read

_LANES = 8


@njit
def _lane_sum(values: Any, lane: Any) -> Any:
    """Of at least as many values as there are lanes; the lanes are scratch."""
    lanes = lane.size
    lane[:] = values.dtype.type(0)
    whole = values.size - values.size % lanes
    for i in range(whole):
        lane[i % lanes] += values[i]
    for i in range(whole, values.size):
        lane[lanes - values.size + i] += values[i]
    s0, s1, s2, s3 = lane[0] + lane[4], lane[1] + lane[5], lane[2] + lane[6], lane[3] + lane[7]
    return (s0 + s1) + (s2 + s3)


@njit
def _sum(values: Any) -> Any:
    total = values.dtype.type(0)
    for value in values:
        total += value
    return total


@njit
def _moments(x: Any, lanes: int, mean: Any, var: Any) -> None:
    kind = x.dtype.type
    size = kind(x.shape[1])
    share = kind(1) / size
    lane = np.empty(8, x.dtype)
    for i in range(x.shape[0]):
        if x.shape[1] >= lanes:
            mean[i] = _lane_sum(x[i], lane) * share
            var[i] = _lane_sum((x[i] - mean[i]) ** 2, lane) * share
        else:
            mean[i] = _sum(x[i]) / size
            var[i] = _sum((x[i] - mean[i]) ** 2) / size


@njit
def _columns(values: Any, total: Any) -> None:
    """Adds the rows in order."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            total[j] = values[i, j] if i == 0 else total[j] + values[i, j]


@njit
def _row_means(values: Any, mean: Any) -> None:
    # The reciprocal is a double even for float32: the product is rounded once, to the dtype.
    share = 1.0 / values.shape[1]
    for i in range(values.shape[0]):
        mean[i, 0] = np.float64(_sum(values[i])) * share


def _statistics(task: Task) -> tuple[Array, Array]:
    lanes = _LANES if task.kind is np.float32 else np.iinfo(np.int64).max
    mean, var = np.empty((2, task.x.shape[0]), task.kind)
    _moments(task.x, lanes, mean, var)
    return mean[:, None], var[:, None]


def _forward(task: Task, mean: Array, root: Array) -> dict[str, Array]:
    y = (task.x - mean) / root
    if task.weight is not None:
        y *= task.weight
    if task.bias is not None:
        y += task.bias
    return task.answer(y=y, mean=mean)


def _backward(task: Task, mean: Array, root: Array) -> dict[str, Array]:
    dy = task.cotangent
    xhat = (task.x - mean) / root
    dweight, dbias = np.zeros((2, task.x.shape[1]), task.kind)
    _columns(dy, dbias)
    _columns(xhat * dy, dweight)
    t = dy if task.weight is None else dy * task.weight
    of_t, of_product = np.empty_like(mean), np.empty_like(mean)
    _row_means(t, of_t)
    _row_means(t * xhat, of_product)
    return task.gradients(((t - of_t) - xhat * of_product) / root, dweight, dbias)


def run(
    kind: Any,
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
    direction: Direction,
    format: Format | str,
) -> dict[str, Array]:
    """PaddlePaddle's answers in float32 or float64 (`kind`); none for another format."""
    task = read(inputs, params, format)
    if task.narrow or task.kind is not kind:
        return {}
    with np.errstate(all="ignore"):
        mean, var = _statistics(task)
        root = np.sqrt(var + task.kind(np.float32(task.eps)))
        return (_forward if direction == "forward" else _backward)(task, mean, root)


MODELS = (
    Model(
        "paddle CPU",
        None,
        "PaddlePaddle on a CPU: two passes, each sum over eight vector lanes, then "
        "(x - mean) / sqrt(var + eps), times weight, plus bias.",
        functools.partial(run, np.float32),
    ),
    Model(
        "paddle CPU, float64",
        "eps_rounded",
        "PaddlePaddle on a CPU in float64: two passes with sums in order, and eps rounded to "
        "float32 (1e-5 becomes 9.99999974738e-06).",
        functools.partial(run, np.float64),
    ),
)
