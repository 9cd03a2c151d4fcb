"""The arrays of attention as its formulas see them.

Grouped queries. With fewer heads of keys than of queries, head h of q meets head h // g of k and v.
The queries of the g heads that share keys become the queries of one head, so that formulas see no
groups. Rows are leading axes; where heads are grouped, h is an axis of its own.

The conditions under which a key takes part stay separate, so that a wrong way can leave one out:
`keep`, a mask other than -inf (`unmasked`), `lengths`, and `position`, the last key that a causal
query sees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.scalars import as_real
from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.ops.letters import Shape, Signature

CAUSAL = ("none", "top_left", "bottom_right")
_INPUTS = (
    "q[... h m d], k[... h n d], v[... h n e], mask[... h m n]?, keep[... h m n]?:bool, "
    "unmasked[... h m n]?:bool, lengths[... h]?:int, position[... h m]?:int, top[... h m]:int"
)
_FORWARD = Signature.parse(f"{_INPUTS} -> y[... h m e]", "d n")
_BACKWARD = _FORWARD.backward({"dy": "y"}, {"dq": "q", "dk": "k", "dv": "v"})
_ELEMENTS = 1 << 20  # scores that are compared at a time

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Shapes:
    """The shapes of a question. `lead`: q's leading axes; `rows`: the formulas'; `heads`: k's."""

    lead: Shape
    rows: Shape
    heads: Shape
    group: int
    queries: int
    keys: int

    @property
    def stacked(self) -> Shape:
        """The shape of arrays with one number for each query."""
        return (*self.rows, self.h, self.group * self.queries)

    @property
    def h(self) -> int:
        return 1 if self.group == 1 else self.heads[-1]


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The arrays as formulas see them. Raises ValueError for shapes, lengths and params that do not
    fit."""
    q, k, v = (inputs[name] for name in "qkv")
    shapes = _shapes(q, k, v)
    stacked, over = shapes.stacked, (*shapes.rows, shapes.h, shapes.keys)
    d, e = q.shape[-1], v.shape[-1]
    output = (*shapes.lead, shapes.queries, e)
    arrays: dict[str, Any] = {}
    if direction == "backward":
        dy = inputs["dy"]
        if dy.shape != output:
            raise ValueError(f"dy has shape {dy.shape} and y {output}: they must be equal.")
        arrays["dy"] = dy.reshape(*stacked, e)
    arrays |= {"q": q.reshape(*stacked, d), "k": k.reshape(*over, d), "v": v.reshape(*over, e)}
    arrays |= _taking_part(inputs, params["causal"], shapes)
    scale = None if params["scale"] is None else as_real(params["scale"], "scale")
    arrays["top"] = _top(arrays, scale if scale is not None else d**-0.5 if d else 1.0)
    formula_params = {
        "scale": scale,
        "rooted": scale is None or scale > 0,
        "corner": params["causal"],
        "offset": shapes.keys - shapes.queries,
        "group": shapes.group,
    }
    gradient_shapes = {"dq": q.shape, "dk": k.shape, "dv": v.shape}

    def restore(name: str, array: Array) -> Array:
        return array.reshape(gradient_shapes.get(name, output))

    return Prepared(
        arrays, formula_params, restore, _FORWARD if direction == "forward" else _BACKWARD
    )


def _shapes(q: Array, k: Array, v: Array) -> _Shapes:
    for name, array, letters in (("q", q, "m d"), ("k", k, "n d"), ("v", v, "n e")):
        if array.ndim < 2:
            raise ValueError(f"{name} has shape {array.shape}: it must be {name}[... {letters}].")
    group, lead, heads = _group(q, k, v), q.shape[:-2], k.shape[:-2]
    if not k.shape[-2] and q.size:
        raise ValueError(f"k has shape {k.shape}: it has no key for q to attend.")
    return _Shapes(
        lead, heads if group == 1 else heads[:-1], heads, group, q.shape[-2], k.shape[-2]
    )


def _taking_part(inputs: dict[str, Any], causal: Any, shapes: _Shapes) -> dict[str, Any]:
    """mask without its -inf, and the arrays that decide which keys take part."""
    scores_shape = (*shapes.lead, shapes.queries, shapes.keys)
    mask, keep = (
        None
        if inputs[name] is None
        else _broadcast(name, inputs[name], scores_shape).reshape(*shapes.stacked, shapes.keys)
        for name in ("mask", "keep")
    )
    unmasked = None
    if mask is not None and np.any(mask == -np.inf):
        unmasked = mask != -np.inf
        mask = np.where(unmasked, mask, mask.dtype.type(0))
    lengths = inputs["lengths"]
    if lengths is not None:
        if lengths.size and not 0 <= lengths.min() <= lengths.max() <= shapes.keys:
            wrong = next(int(n) for n in lengths.flat if not 0 <= n <= shapes.keys)
            raise ValueError(f"lengths has {wrong}, and k has {shapes.keys} keys.")
        lengths = _broadcast("lengths", lengths, shapes.heads).reshape(*shapes.rows, shapes.h)
    position = _position(causal, shapes)
    return {
        "mask": mask, "keep": keep, "unmasked": unmasked, "lengths": lengths, "position": position,
    }  # fmt: skip


def _group(q: Array, k: Array, v: Array) -> int:
    """The number of q's heads that share one head of k and v."""
    if k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q has shape {q.shape}, k {k.shape} and v {v.shape}: they must be q[... m d], "
            "k[... n d] and v[... n e]."
        )
    (*lead,), (*heads,) = q.shape[:-2], k.shape[:-2]
    if lead == heads:
        return 1
    fits = len(lead) == len(heads) and lead[:-1] == heads[:-1]
    if not fits or not heads[-1] or lead[-1] % heads[-1]:
        raise ValueError(
            f"q has the leading axes {tuple(lead)}, and k and v {tuple(heads)}: they must be "
            "equal, except that the last of them, q's heads, may be a multiple of k's."
        )
    return int(lead[-1] // heads[-1])


def _broadcast(name: str, array: Array, shape: Shape) -> Array:
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"{name} has shape {array.shape}, which does not broadcast to {shape}."
        ) from None


def _position(causal: Any, shapes: _Shapes) -> Array | None:
    if causal not in CAUSAL:
        raise ValueError(f"causal is {causal!r}: it must be one of {', '.join(CAUSAL)}.")
    if causal == "none":
        return None
    offset = shapes.keys - shapes.queries if causal == "bottom_right" else 0
    return np.broadcast_to(
        np.tile(np.arange(shapes.queries) + offset, shapes.group), shapes.stacked
    )


def present(shape: Shape, /, **parts: Any) -> npt.NDArray[np.bool_] | None:
    """Which scores take part; None for all."""
    takes_part: npt.NDArray[np.bool_] | None = None
    places = np.arange(shape[-1])
    keep, unmasked = parts.get("keep"), parts.get("unmasked")
    lengths, position = parts.get("lengths"), parts.get("position")
    for condition in (
        keep,
        unmasked,
        None if lengths is None else places < lengths[..., None, None],
        None if position is None else places <= position[..., None],
    ):
        if condition is not None:
            takes_part = condition if takes_part is None else takes_part & condition
    return None if takes_part is None else np.broadcast_to(takes_part, shape)


def _top(arrays: dict[str, Any], scale: float) -> Array:
    """For each query the key of the largest score that takes part, or of one near it."""
    q, k = arrays["q"], arrays["k"]
    *lead, h, m, _ = q.shape
    n, rows = k.shape[-2], math.prod(lead)
    tops = np.zeros((rows, h, m), np.intp)
    flat = {
        name: None if (a := arrays[name]) is None else a.reshape(rows, *a.shape[len(lead) :])
        for name in ("q", "k", "mask", "keep", "unmasked", "lengths", "position")
    }
    step = max(_ELEMENTS // max(h * m * n, 1), 1)
    for start in range(0, rows if n else 0, step):
        span = slice(start, start + step)
        block = {name: None if array is None else array[span] for name, array in flat.items()}
        with np.errstate(all="ignore"):
            tops[span] = _approximate(block, scale).argmax(-1)
    return tops.reshape(*lead, h, m)


def _approximate(block: dict[str, Any], scale: float) -> Array:
    """The scores in float64, -inf where a key takes no part."""
    left, right = to_float64(block["q"]), np.swapaxes(to_float64(block["k"]), -1, -2)
    scores = blas.product(left, right) * scale
    if block["mask"] is not None:
        scores = scores + to_float64(block["mask"])
    lanes = present(scores.shape, **block)
    return scores if lanes is None else np.where(lanes, scores, -np.inf)
