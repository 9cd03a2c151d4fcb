"""How the inputs of batch, group and instance norm, x (N, C, ...), become rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.ops.letters import Signature

_BATCH = Signature.parse(
    "x[... n], weight[...]?, bias[...]?, running_mean[...]?, running_var[...]? "
    "-> y[... n], new_mean[...], new_var[...]",
    "n",
)
_GROUP = Signature.parse("x[... c s], weight[c]?, bias[c]? -> y[... c s]", "c s")
_GRADIENTS = {"dx": "x", "dweight": "weight", "dbias": "bias"}


def _checked(inputs: dict[str, Any]) -> Any:
    x, dy = inputs["x"], inputs.get("dy")
    if x.ndim < 2:
        raise ValueError(f"x has shape {x.shape}, but it must be (N, C, ...).")
    if dy is not None and dy.shape != x.shape:
        raise ValueError(f"dy has shape {dy.shape} and x {x.shape}: they must be equal.")
    for name in ("weight", "bias", "running_mean", "running_var"):
        array = inputs.get(name)
        if array is not None and array.shape != x.shape[1:2]:
            raise ValueError(f"{name} has shape {array.shape}, and x has {x.shape[1]} channels.")
    return x


def batch(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """One row for each channel. Absent running statistics are 0 and 1."""
    x = _checked(inputs)
    for name in ("training", "biased"):
        if params[name] not in (True, False):
            raise TypeError(f"{name} is {params[name]!r}, but it must be True or False.")
    channels, shape = x.shape[1], (x.shape[1], x.shape[0], *x.shape[2:])
    arrays = dict(inputs)
    for name in {"x", "dy"} & set(inputs):
        arrays[name] = np.moveaxis(inputs[name], 1, 0).reshape(channels, x.size // max(channels, 1))
    for name, value in (("running_mean", 0), ("running_var", 1)):
        if arrays.get(name) is None:
            arrays[name] = np.full(channels, value, x.dtype)

    def restore(name: str, array: Any) -> Any:
        return np.moveaxis(array.reshape(shape), 0, 1) if name in ("y", "dx") else array

    backward = direction == "backward"
    signature = _BATCH.backward({"dy": "y"}, _GRADIENTS) if backward else _BATCH
    return Prepared(arrays, params, restore, signature)


def group(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """One row for each image and group, with positions as one axis, s."""
    x = _checked(inputs)
    channels = x.shape[1]
    groups = as_count(params.get("num_groups", channels), "num_groups")
    if channels % groups:
        raise ValueError(f"num_groups is {groups}, which does not divide {channels} channels.")
    arrays = dict(inputs)
    for name in {"x", "dy"} & set(inputs):
        arrays[name] = inputs[name].reshape(*x.shape[:2], math.prod(x.shape[2:]))

    def restore(name: str, array: Any) -> Any:
        return array.reshape(x.shape) if name in ("y", "dx") else array

    backward = direction == "backward"
    signature = _GROUP.backward({"dy": "y"}, _GRADIENTS) if backward else _GROUP
    return Prepared(arrays, {"eps": params["eps"], "num_groups": groups}, restore, signature)


def instance(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """A group for each channel."""
    return group(inputs, {**params, "num_groups": max(_checked(inputs).shape[1], 1)}, direction)
