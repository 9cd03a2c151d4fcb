"""The arrays of attention as its formulas see them.

Grouped queries. With fewer heads of keys than of queries, head h of q meets head h // g of k and v.
The g heads that share keys are queries of one head, g times as many, so that to a formula there is
no group. Rows are leading axes; where heads are grouped, h is an axis of its own.

What takes part stays in its parts, so that a wrong way can leave one out: keys that `keep` has,
that `mask` does not hold at -inf (`unmasked`), that lie before `lengths`, that are not after
`position`, the last key that a causal query sees.
"""

from __future__ import annotations

import math
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
_ELEMENTS = 1 << 20  # scores that are looked at together

Array = npt.NDArray[Any]


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """Raises ValueError for shapes, lengths and params that do not fit."""
    q, k, v = (inputs[name] for name in "qkv")
    for name in "qkv":
        if inputs[name].ndim < 2:
            letters = {"q": "... m d", "k": "... n d", "v": "... n e"}[name]
            raise ValueError(f"{name} has shape {inputs[name].shape}: it is {name}[{letters}].")
    group = _group(q, k, v)
    (*lead, queries, d), (*heads, keys, _) = q.shape, k.shape
    if not keys and q.size:
        raise ValueError(f"k has shape {k.shape}: it has no key for q to attend.")
    rows: Shape = tuple(heads) if group == 1 else tuple(heads[:-1])
    h = 1 if group == 1 else heads[-1]
    stacked = (*rows, h, group * queries)

    def scores(name: str) -> Array | None:
        array = inputs[name]
        if array is None:
            return None
        whole = _broadcast(name, array, (*lead, queries, keys))
        return whole.reshape(*stacked, keys)

    scale, mask, lengths = params["scale"], scores("mask"), inputs["lengths"]
    unmasked = None if mask is None else mask != -np.inf
    if mask is None or np.all(unmasked):
        unmasked = None
    else:
        mask = np.where(unmasked, mask, mask.dtype.type(0))
    if lengths is not None:
        if lengths.size and not 0 <= lengths.min() <= lengths.max() <= keys:
            wrong = next(int(n) for n in lengths.flat if not 0 <= n <= keys)
            raise ValueError(f"lengths has {wrong}, and k has {keys} keys.")
        lengths = _broadcast("lengths", lengths, tuple(heads)).reshape(*rows, h)
    arrays = {
        "q": q.reshape(*stacked, d),
        "k": k.reshape(*rows, h, keys, d),
        "v": v.reshape(*rows, h, keys, v.shape[-1]),
        "mask": mask,
        "keep": scores("keep"),
        "unmasked": unmasked,
        "lengths": lengths,
        "position": _position(params["causal"], queries, keys, group, stacked),
    }
    told = {
        "scale": None if scale is None else as_real(scale, "scale"),
        "offset": keys - queries,
        "corner": params["causal"],
        "group": group,
        "rooted": scale is None or scale > 0,
    }
    arrays["top"] = _top(arrays, told["scale"] if scale is not None else d**-0.5 if d else 1.0)
    given = arrays if direction == "forward" else {"dy": inputs["dy"], **arrays}
    if direction == "backward":
        wanted = (*lead, queries, v.shape[-1])
        if inputs["dy"].shape != wanted:
            raise ValueError(
                f"dy has shape {inputs['dy'].shape} and y {wanted}: they are the same."
            )
        given["dy"] = inputs["dy"].reshape(*stacked, v.shape[-1])
    shapes = {"dq": q.shape, "dk": k.shape, "dv": v.shape}

    def restore(name: str, array: Array) -> Array:
        return array.reshape(shapes.get(name, (*lead, queries, v.shape[-1])))

    return Prepared(given, told, restore, _FORWARD if direction == "forward" else _BACKWARD)


def _group(q: Array, k: Array, v: Array) -> int:
    """How many heads of q share one of k and v."""
    if k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q has shape {q.shape}, k {k.shape} and v {v.shape}: they are q[... m d], k[... n d] "
            "and v[... n e]."
        )
    (*lead,), (*heads,) = q.shape[:-2], k.shape[:-2]
    if lead == heads:
        return 1
    fits = len(lead) == len(heads) and lead[:-1] == heads[:-1]
    if not fits or not heads[-1] or lead[-1] % heads[-1]:
        raise ValueError(
            f"q has the leading axes {tuple(lead)}, and k and v {tuple(heads)}: they are the same, "
            "but that the last of them, q's heads, may be a multiple of k's."
        )
    return int(lead[-1] // heads[-1])


def _broadcast(name: str, array: Array, shape: Shape) -> Array:
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"{name} has shape {array.shape}, which does not broadcast to {shape}."
        ) from None


def _position(causal: Any, queries: int, keys: int, group: int, shape: Shape) -> Array | None:
    if causal not in CAUSAL:
        raise ValueError(f"causal is {causal!r}: it is one of {', '.join(CAUSAL)}.")
    if causal == "none":
        return None
    offset = keys - queries if causal == "bottom_right" else 0
    return np.broadcast_to(np.tile(np.arange(queries) + offset, group), shape)


def present(shape: Shape, /, **parts: Any) -> npt.NDArray[np.bool_] | None:
    """Which scores take part: None for all."""
    found: npt.NDArray[np.bool_] | None = None
    places = np.arange(shape[-1])
    keep, unmasked = parts.get("keep"), parts.get("unmasked")
    lengths, position = parts.get("lengths"), parts.get("position")
    for one in (
        keep,
        unmasked,
        None if lengths is None else places < lengths[..., None, None],
        None if position is None else places <= position[..., None],
    ):
        if one is not None:
            found = one if found is None else found & one
    return None if found is None else np.broadcast_to(found, shape)


def _top(arrays: dict[str, Any], scale: float) -> Array:
    """The key of each query's largest score, or one near it, of those that take part."""
    names = ("q", "k", "mask", "keep", "unmasked", "lengths", "position")
    lead = arrays["q"].shape[:-3]
    flat = {
        n: None if (a := arrays[n]) is None else a.reshape(math.prod(lead), *a.shape[len(lead) :])
        for n in names
    }
    h, m, n = (*flat["q"].shape[1:3], flat["k"].shape[2])
    found = np.zeros((len(flat["q"]), h, m), np.intp)
    step = max(_ELEMENTS // max(h * m * n, 1), 1)
    if not n:
        return found.reshape(*lead, h, m)
    for start in range(0, len(found), step):
        some = slice(start, start + step)
        block = {name: None if array is None else array[some] for name, array in flat.items()}
        with np.errstate(all="ignore"):
            left, right = to_float64(block["q"]), np.swapaxes(to_float64(block["k"]), -1, -2)
            scores = blas.product(left, right) * scale
            if block["mask"] is not None:
                scores = scores + to_float64(block["mask"])
        lanes = present(scores.shape, **block)
        found[some] = (scores if lanes is None else np.where(lanes, scores, -np.inf)).argmax(-1)
    return found.reshape(*lead, h, m)
