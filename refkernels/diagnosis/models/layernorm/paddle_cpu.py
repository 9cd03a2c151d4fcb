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
from typing import Any

import numpy as np

from refkernels.arithmetic import sums_in_order
from refkernels.diagnosis.models.layernorm.model import Array, LayerNormTask, Model, of_task

_LANES = 8


def _lane_sum(values: Array) -> Array:
    """The sums of rows that have at least one value for each lane."""
    rows, n = values.shape
    whole = n - n % _LANES
    lane = sums_in_order.by_numpy(values[:, :whole].reshape(rows, -1, _LANES))
    lane[:, _LANES - n % _LANES :] += values[:, whole:]
    pairs = lane[:, :4] + lane[:, 4:]
    total: Array = (pairs[:, 0] + pairs[:, 1]) + (pairs[:, 2] + pairs[:, 3])
    return total


def _row_means(values: Array) -> Array:
    # The reciprocal is a double even for float32: the product is rounded once, to the dtype.
    share = 1.0 / values.shape[1]
    means = sums_in_order.by_numpy(values).astype(np.float64) * share
    return means.astype(values.dtype)[:, None]


def _statistics(task: LayerNormTask) -> tuple[Array, Array]:
    n = task.kind(task.x.shape[1])
    if task.kind is np.float32 and task.x.shape[1] >= _LANES:
        share = task.kind(1) / n
        mean = _lane_sum(task.x) * share
        var = _lane_sum((task.x - mean[:, None]) ** 2) * share
    else:
        mean = sums_in_order.by_numpy(task.x) / n
        var = sums_in_order.by_numpy((task.x - mean[:, None]) ** 2) / n
    return mean[:, None], var[:, None]


def _forward(task: LayerNormTask, mean: Array, root: Array) -> dict[str, Array]:
    y = (task.x - mean) / root
    if task.weight is not None:
        y *= task.weight
    if task.bias is not None:
        y += task.bias
    return task.answer(y=y, mean=mean)


def _backward(task: LayerNormTask, mean: Array, root: Array) -> dict[str, Array]:
    dy = task.cotangent
    xhat = (task.x - mean) / root
    dweight, dbias = (np.add.accumulate(terms)[-1] for terms in (xhat * dy, dy))
    t = dy if task.weight is None else dy * task.weight
    of_t, of_product = _row_means(t), _row_means(t * xhat)
    return task.gradients(((t - of_t) - xhat * of_product) / root, dweight, dbias)


@of_task
def run(kind: Any, task: LayerNormTask, forward: bool) -> dict[str, Array]:
    """PaddlePaddle's answers in float32 or float64 (`kind`); none in another format."""
    if task.narrow or task.kind is not kind:
        return {}
    mean, var = _statistics(task)
    root = np.sqrt(var + task.kind(np.float32(task.eps)))
    return (_forward if forward else _backward)(task, mean, root)


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
