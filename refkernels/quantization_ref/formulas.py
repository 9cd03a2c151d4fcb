"""The formulas of casts, quantizers and dequantizers, and how their arrays are arranged.

    cast             y = g(x)
    quantize         y = clip(round(x / scale) + zero_point), or g(x / scale) for a format of floats
    dequantize       y = (x - zero_point) scale
    block_quantize   scale = h(max |x| / M),  y = g(x / scale), block by block
    table_quantize   scale = max |x|,  y = the place of the number of a table nearest to x / scale

g rounds to the format of y, and h to that of the scales (`arithmetic.grids`). Where a kernel's own
rounding may carry x / scale over a step, the bound has the height of the step.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from refkernels.arguments import as_text
from refkernels.arithmetic.arrays import LOW, to_float64
from refkernels.arithmetic.arrays import spread as broadcast
from refkernels.arithmetic.grids import NumberGrid, grid
from refkernels.op import Direction
from refkernels.ops import Fault, Prepared

Array = npt.NDArray[Any]
OVERFLOWS = ("saturate", "special")
SCALE_RULES = ("floor", "ceil", "nearest")


def _one_of(params: dict[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    text: str = as_text(params[name], name)
    if text not in allowed:
        raise ValueError(f"{name} is {text!r}: it must be one of {', '.join(allowed)}.")
    return text


def _narrow(params: dict[str, Any], name: str) -> str:
    """The name of a format that is not empty, checked."""
    text: str = as_text(params[name], name)
    return grid(text or " ").name


def spread(scale: Array | None, shape: tuple[int, ...], name: str) -> Array | None:
    """One number for each element: each axis of `scale`, the last ones of x, divides x's."""
    if scale is None:
        return None
    have = (1,) * (len(shape) - scale.ndim) + scale.shape
    if len(have) > len(shape) or any(
        n != whole and (not n or whole % n) for n, whole in zip(have, shape, strict=True)
    ):
        raise ValueError(
            f"{name} has shape {scale.shape}, which does not divide x's, {shape}, into blocks."
        )
    wide = (scale.astype(np.float32) if scale.dtype in LOW else scale).reshape(have)
    for axis, (n, whole) in enumerate(zip(have, shape, strict=True)):
        wide = np.repeat(wide, whole // n, axis) if n != whole else wide
    return wide


# --- cast ---------------------------------------------------------------------------------------


def prepare_cast(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    to, ties = _narrow(params, "to"), as_text(params["ties"], "ties")
    options: dict[str, Any] = {"to": to, "ties": grid(to, ties).ties}
    x, own, draws = inputs["x"], grid(to, ties), inputs.get("draws")
    if draws is not None and not ((draws >= 0) & (draws < 1)).all():
        raise ValueError("draws are numbers of at least 0 and less than 1, and some are not.")
    if _one_of(params, "overflow", OVERFLOWS) == "saturate" or own.is_integer:
        if (infinite := np.isinf(x)).any():
            x = np.where(infinite, np.clip(to_float64(x), own.least, own.largest), x)
        return Prepared({**inputs, "x": x}, options)
    beyond, special = _specials(to_float64(x), own)
    return Prepared({**inputs, "beyond": beyond, "special": special}, options)


def _specials(x: Array, own: NumberGrid) -> tuple[Array, Array]:
    """Where the rounding of x exceeds the format, and its infinities or NaN there, or ones."""
    unlimited = replace(own, least=-math.inf, largest=math.inf)
    beyond = np.abs(unlimited(x)) > own.largest
    kind = np.dtype(getattr(ml_dtypes, own.name, own.name))
    with np.errstate(all="ignore"):
        special = np.where(beyond, np.copysign(np.inf, x), 1.0).astype(kind)
    return beyond, to_float64(special)


def cast(
    xp: Any, x: Any, to: str, ties: str, draws: Any = None, beyond: Any = None, special: Any = None
) -> Any:
    """With draws, the number above x where they are less than x's place between both neighbours."""
    y = xp.round(x, to, ties)
    if draws is not None:
        below, above = xp.round(x, to, "down"), xp.round(x, to, "up")
        y = xp.where(draws * (above - below) < x - below, above, below)
    return y if beyond is None else xp.where(beyond, special, y)


# --- quantize and dequantize ----------------------------------------------------------------------


def prepare_quantize(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    to, shape = _narrow(params, "to"), inputs["x"].shape
    if inputs.get("zero_point") is not None and not grid(to).is_integer:
        raise ValueError(f"There is a zero_point, but to is {to}: it must be a format of integers.")
    scales = {n: spread(inputs.get(n), shape, n) for n in ("scale", "zero_point")}
    return Prepared({**inputs, **scales}, {"to": to, "ties": grid(to, params["ties"]).ties})


def quantize(xp: Any, x: Any, scale: Any, to: str, ties: str, zero_point: Any = None) -> Any:
    units = xp.quotient(x, scale)
    if zero_point is None:
        return xp.round(units, to, ties)
    return xp.round(xp.round(units, ties=ties) + xp.array(zero_point), to)


def prepare_dequantize(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    shape = inputs["x"].shape
    return Prepared({name: spread(array, shape, name) for name, array in inputs.items()}, {})


def offset_first(xp: Any, x: Any, scale: Any, zero_point: Any = None) -> Any:
    return (x if zero_point is None else x - xp.array(zero_point)) * scale


def offset_after(xp: Any, x: Any, scale: Any, zero_point: Any = None) -> Any:
    """x scale - zero_point scale, the second product kept or not."""
    if zero_point is None:
        return x * scale
    return x * scale - xp.may_store(xp.array(zero_point) * scale)


# --- block_quantize -------------------------------------------------------------------------------


def prepare_blocks(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    to, scales = _narrow(params, "to"), _narrow(params, "scales")
    if grid(scales).is_integer:
        raise ValueError(f"scales is {scales!r}: it must be a narrower format of floats.")
    x, rule = inputs["x"], _one_of(params, "rule", SCALE_RULES)
    if not x.ndim:
        raise ValueError("x has no axis: a block is a part of its last one.")
    block = max(x.shape[-1], 1) if params["block"] is None else params["block"]
    if type(block) is not int or block < 1 or x.shape[-1] % block:
        raise ValueError(f"block is {block!r}: it must divide x's last axis, {x.shape[-1]}.")
    rows = x.reshape(*x.shape[:-1], x.shape[-1] // block, block)

    def restore(name: str, array: Array) -> Array:
        return array.reshape(x.shape if name == "y" else rows.shape[:-1])

    options = {"to": to, "scales": scales, "rule": rule, "eps": params["eps"]}
    arrays = {**inputs, "x": rows}
    if inputs.get("tensor_scale") is not None:
        whole = broadcast(inputs["tensor_scale"], x.shape[:-1], "tensor_scale")
        arrays["tensor_scale"] = np.broadcast_to(whole[..., None], rows.shape[:-1])
    return Prepared(arrays, options, restore)


def blocks(
    xp: Any, x: Any, to: str, scales: str, rule: str, eps: Any, tensor_scale: Any = None
) -> Any:
    """M is the largest number of y's format, or for "floor" the largest power of two."""
    own, ties = grid(to), {"floor": "zero", "ceil": "up", "nearest": "even"}[rule]
    most = 2.0 ** math.floor(math.log2(own.largest)) if rule == "floor" else own.largest
    largest = xp.maximum(xp.max(abs(x)), eps)
    if tensor_scale is not None:
        tensor_scale = xp.reshape(tensor_scale, (*largest.shape,))
        largest = xp.quotient(largest, tensor_scale)
    scale = xp.round(xp.quotient(largest, xp.number(most)), scales, ties)
    by = scale if tensor_scale is None else scale * tensor_scale
    empty = xp.less(scale, xp.number(grid(scales).step))  # and not where the scale is NaN
    units = xp.where(empty, xp.number(0), xp.quotient(x, by))
    return xp.round(units, to), scale


# --- table_quantize -------------------------------------------------------------------------------


def places(table: Array, name: str) -> tuple[int, ...]:
    """The places of a table's numbers, from the least to the largest; of equal ones, the first."""
    if not len(table):
        raise ValueError(f"{name} has no number.")
    return tuple(np.unique(to_float64(table), return_index=True)[1].tolist())


def prepare_table(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    return Prepared(inputs, {"places": places(inputs["table"], "table")})


def by_table(xp: Any, x: Any, table: Any, places: tuple[int, ...], down: bool = False) -> Any:
    """Of two numbers that are equally near, the lesser; of equal ones, the first. Where all of x
    are 0, y is the place of 0. `down`: a kernel takes the next lesser number."""
    scale = xp.max(abs(x))
    units = xp.where(scale > 0, xp.quotient(x, scale), xp.number(0))
    rising = xp.take(table, np.array(places), axis=-1)
    below, above = (xp.take(rising, np.arange(k, len(places) - 1 + k), axis=-1) for k in (0, 1))
    ends = xp.reshape(above if down else (below + above) / 2, (1, 1, len(places) - 1))
    one, zero = xp.array(np.diff(places)[None, None].astype(float)), xp.number(0)
    wide = xp.reshape(units, (*units.shape, 1))
    steps = (
        xp.where(xp.less(wide, ends), zero, one)
        if down
        else xp.where(xp.less(ends, wide), one, zero)
    )
    y = xp.round(places[0] + xp.reshape(xp.sum(steps), units.shape))
    return y, xp.reshape(scale, x.shape[:-1])


def _by_rule(rule: str) -> Fault:
    def other(xp: Any, x: Any, **arguments: Any) -> Any:
        return blocks(xp, x, **{**arguments, "rule": rule})

    return Fault("other_scale_rule", other, details={"rule": rule})


CODED_DOWN = Fault(
    "rounded_otherwise",
    partial(by_table, down=True),
    details={"rounding": "down", "own": "even", "formula": "x / scale"},
)
OTHER_RULES = tuple(map(_by_rule, SCALE_RULES))
