"""OneFlow's LayerNorm on a CPU (read and reproduced at 0.9), composed of other ops:

    mean = (sum x) fl(1 / n);  var: Welford in float64, rounded once
    y = (x - mean) (1 / sqrt(var + eps)), then times weight, plus bias; every op rounds
Backward is the chain rule over these ops, d = dy weight, r = 1 / sqrt(v), v = var + eps:
    dx = (d r + (sum -d r) fl(1 / n)) + dvar (fl(2 / n) (x - mean)),
    dvar = (sum d (x - mean)) (-1 / (2 sqrt(v v v))), from sqrt on in double, rounded once
    dweight = sum dy y0,  dbias = sum dy,  y0 the normalised x
A sum over an axis of length n for m results shrinks the axis step by step to k = ceil(n / s),
s = 8 + floor(sqrt(m)): result j adds the elements j, j + k, j + 2 k, ... in order. So its bits
depend on the number of rows.

Source: python/oneflow/nn/modules/normalization.py, oneflow/core/ndarray/ndarray_reduce.h,
oneflow/core/autograd/gradient_funcs/variance.cpp, oneflow/user/kernels/variance_kernel_util.h.
"""

from __future__ import annotations

import math

import numpy as np

from refkernels.diagnosis.models.layernorm.model import Array, LayerNormTask, Model, of_task
from refkernels.layernorm_ref.algorithms import moments


def _sum(values: Array, axis: int) -> Array:
    """The sum of a matrix over one axis, kept as length 1."""
    shrink = 8 + math.isqrt(values.shape[1 - axis])
    moved = np.moveaxis(values, axis, 0)
    while moved.shape[0] > 1:
        kept = -(-moved.shape[0] // shrink)
        total = np.zeros((kept, moved.shape[1]), values.dtype)
        for first in range(0, moved.shape[0], kept):
            part = moved[first : first + kept]
            total[: part.shape[0]] += part
        moved = total
    return np.moveaxis(moved, 0, axis)


def _statistics(task: LayerNormTask) -> tuple[Array, Array]:
    """The mean, and the variance plus eps, of each row, (rows, 1)."""
    var = moments(task.x.astype(np.float64), "welford").var.astype(task.kind)
    mean = _sum(task.x, 1) * task.kind(1.0 / task.x.shape[1])
    return mean, (var + task.kind(task.eps))[:, None]


def _forward(task: LayerNormTask, centred: Array, raised: Array) -> dict[str, Array]:
    y = centred * (task.kind(1) / np.sqrt(raised))
    if task.weight is not None or task.bias is not None:
        y = y * task.scale + task.shift
    return task.answer(y=y)


def _backward(task: LayerNormTask, centred: Array, raised: Array) -> dict[str, Array]:
    n = task.x.shape[1]
    dy = task.cotangent
    rstd = task.kind(1) / np.sqrt(raised)
    dweight, dbias = _sum(dy * (centred * rstd), 0), _sum(dy, 0)
    d = dy if task.weight is None else dy * task.weight
    direct = d * rstd
    by_mean = _sum(-direct, 1) * task.kind(1.0 / n)
    cubed = (raised * raised * raised).astype(np.float64)
    slope = -1.0 / (2.0 * np.sqrt(cubed))
    dvar = (_sum(d * centred, 1).astype(np.float64) * slope).astype(task.kind)
    dx = (direct + by_mean) + dvar * (centred * task.kind(2.0 / n))
    return task.gradients(dx, dweight, dbias)


@of_task
def run(task: LayerNormTask, forward: bool) -> dict[str, Array]:
    """OneFlow's answers; none in 16-bit formats, for which it has no CPU kernels."""
    if task.narrow:
        return {}
    mean, raised = _statistics(task)
    return (_forward if forward else _backward)(task, task.x - mean, raised)


MODEL = Model(
    "oneflow CPU",
    None,
    "OneFlow on a CPU: the mean by a shrinking sum in the working precision, Welford's variance in "
    "float64, then (x - mean) * rsqrt(var + eps).",
    run,
)
