"""MindSpore's LayerNorm on a CPU (read at 2.x; reproduced at 2.10).

Forward: max(E[x^2] - mean^2, 0) in one pass of float64 sums; both statistics are stored in float32,
whatever the input's dtype.
    y = (x - mean) / sqrt(var + eps) weight + bias     in the input's dtype, every step rounded to
        it (float16 too), from the float64 mean and the float32 root of float32(var) + float32(eps);
        a float16 is made of a float32, so that mean is rounded twice
Backward, in float32 whatever the input's dtype, sums in order, r = (var + eps)^(-1/2):
    s1 = sum t (x - mean) * (-1/2 (var + eps)^(-3/2)),  s2 = sum t,  s3 = -2 sum (x - mean)
    dx = t r + (x - mean) (2 s1 / n) + (s1 s3 / n - r s2) / n,  t = dy weight
    dweight += dy r (x - mean),  dbias += dy                     row after row
The powers are the C library's powf, which rounds wrongly for about one argument in 2000: the models
take this machine's.

The clamp at 0 is not in the older sources; it was found by comparing bits.

Source: mindspore/ops/kernel/cpu/native/layer_norm_cpu_kernel.cc, layer_norm_grad_cpu_kernel.cc (in
older versions mindspore/ccsrc/plugin/device/cpu/kernel/).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from refkernels.arithmetic import sums_in_order
from refkernels.arithmetic.jit import njit
from refkernels.diagnosis.models.layernorm.model import Array, LayerNormTask, Model, of_task


@njit
def _powf(base: Any, exponent: Any, power: Any) -> None:
    """The C library's powf; the exponent is an argument so that no compiler sees a square root."""
    for i in range(base.size):
        power[i] = base[i] ** exponent


@njit
def _row_sums(x: Any, t: Any, mean: Any, sums: Any) -> None:
    """sum t (x - mean), sum t, sum (x - mean) of each row, (3, rows)."""
    for i in range(x.shape[0]):
        product, plain, centred = np.float32(0), np.float32(0), np.float32(0)
        for j in range(x.shape[1]):
            deviation = x[i, j] - mean[i]
            product += t[i, j] * deviation
            plain += t[i, j]
            centred += deviation
        sums[0, i], sums[1, i], sums[2, i] = product, plain, centred


@njit
def _affine_gradients(x: Any, dy: Any, mean: Any, power: Any, dweight: Any, dbias: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            dweight[j] += dy[i, j] * power[i] * (x[i, j] - mean[i])
            dbias[j] += dy[i, j]


def _statistics(task: LayerNormTask) -> tuple[Array, Array]:
    x, n = task.x.astype(np.float64), task.x.shape[1]
    mean = sums_in_order.by_numpy(x) / n
    var = sums_in_order.by_numpy(x * x) / n - mean * mean
    var = np.where(var < 0.0, 0.0, var)  # NaN stays NaN
    return mean, var.astype(np.float32) + np.float32(task.eps)


def _forward(task: LayerNormTask) -> dict[str, Array]:
    mean, raised = _statistics(task)
    dtype = task.format.storage
    x, weight, bias = (values.astype(dtype) for values in (task.x, task.scale, task.shift))
    root = np.sqrt(raised).astype(dtype)[:, None]
    centre = (mean.astype(np.float32) if dtype == np.float16 else mean).astype(dtype)
    y = (x - centre[:, None]) / root * weight + bias
    # The op returns the stored mean, float32 even where y is not.
    return {**task.answer(y=y), "mean": mean.astype(np.float32).reshape(task.leading)}


def _backward(task: LayerNormTask) -> dict[str, Array]:
    mean_in_float64, raised = _statistics(task)
    mean = mean_in_float64.astype(np.float32)
    # The product with the weight is rounded to the input's dtype first.
    t = task.stored(task.cotangent * task.scale).astype(np.float32)
    x, dy = (values.astype(np.float32) for values in (task.x, task.cotangent))
    power, cube = np.empty((2, mean.size), np.float32)
    _powf(raised, np.float32(-0.5), power)
    _powf(raised, np.float32(-1.5), cube)
    sums = np.empty((3, mean.size), np.float32)
    _row_sums(x, t, mean, sums)
    s1, s2, s3 = sums[0] * (np.float32(-0.5) * cube), sums[1], np.float32(-2) * sums[2]
    share = np.float32(1) / np.float32(x.shape[1])
    slope = np.float32(2) * s1 * share
    shift = (-power * s2 + share * s1 * s3) * share
    dx = (t * power[:, None] + (x - mean[:, None]) * slope[:, None]) + shift[:, None]
    dweight, dbias = np.zeros((2, x.shape[1]), np.float32)
    _affine_gradients(x, dy, mean, power, dweight, dbias)
    return task.gradients(dx, dweight, dbias)


@of_task
def run(
    outputs: Mapping[str, tuple[str, ...]], task: LayerNormTask, forward: bool
) -> dict[str, Array]:
    """MindSpore's answers: these outputs of each format."""
    wanted = outputs.get(task.format.name, ())
    answer = (_forward if forward else _backward)(task) if wanted else {}
    return {name: answer[name] for name in wanted if name in answer}


_SUMS = ("mean", "dweight", "dbias")  # without an intermediate result in float16
_ALL = ("y", "dx", *_SUMS)
MODELS = (
    Model(
        "mindspore CPU",
        None,
        "MindSpore on a CPU: max(E[x^2] - mean^2, 0) summed in float64 and stored in float32, then "
        "(x - mean) / sqrt(var + eps) in the input's dtype.",
        functools.partial(run, {"float32": _ALL, "float16": _SUMS}),
    ),
    Model(
        "mindspore CPU, float16",
        "narrow_intermediates",
        "MindSpore on a CPU in float16: every step after the statistics, (x - mean) / sqrt(var + "
        "eps) weight + bias, is rounded to float16, and dy weight in the gradients.",
        functools.partial(run, {"float16": _ALL}),
        {"format": "float16"},
    ),
    Model(
        "mindspore CPU, float64",
        "float32_statistics",
        "MindSpore on a CPU in float64: the variance is stored in float32 and the gradients are "
        "computed in float32, so the answers are no better than float32's.",
        functools.partial(run, {"float64": _ALL}),
    ),
)
