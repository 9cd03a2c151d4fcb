"""The arrays of attention as its formulas see them.

Grouped queries. With fewer heads of keys than of queries, head h of q meets head h // g of k and v.
The queries of the g heads that share keys become the queries of one head, so that formulas see no
groups. Rows are leading axes; where heads are grouped, h is an axis of its own.

The conditions under which a key takes part stay separate, so that a wrong way can leave one out:
`keep`, a mask other than -inf (`unmasked`), `lengths`, `begin` and `end` of a packed sequence, and
`first` and `position`, the first and the last key that a query sees, by causality and its window;
those before `prefix` it sees too. `own` is a query's own place among the keys.

A sink is one more key, the last, for which k and v are 0 and the mask is the sink: `sunk` says that
there is one, which takes part whatever the conditions are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.scalars import as_real
from refkernels.attention_ref.sequences import Sequences, dense, gathered, packed
from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.ops.domains import POSITIVE
from refkernels.ops.letters import Shape, Signature

LAYOUTS = ("bhsd", "bshd")
OF_QUERIES = ("begin", "end", "first", "position", "prefix", "own")
SCALES = ("descale_q", "descale_k", "descale_v")
_INPUTS = (
    "q[... h m d], k[... h n d], v[... h n e], mask[... h m n]?, keep[... h m n]?:bool, "
    "unmasked[... h m n]?:bool, lengths[... h]?:int, alibi_slopes[... h m]?, "
    f"{', '.join(f'{name}[... h]?' for name in SCALES)}, "
    f"{', '.join(f'{name}[... h m]?:int' for name in OF_QUERIES)}, top[... h m]:int"
)
_FORWARD = Signature.parse(f"{_INPUTS} -> y[... h m e], lse[... h m]", "d n")
_BACKWARD = _FORWARD.backward({"dy": "y"}, {"dq": "q", "dk": "k", "dv": "v"})
_SCORED = ("q", "k", "mask", "keep", "unmasked", "lengths", "alibi_slopes")
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
    inputs, turn = _heads_first(inputs, params["layout"])
    inputs, sequences = _in_sequences(inputs, direction)
    q, k, v = (inputs[name] for name in "qkv")
    shapes = _shapes(q, k, v)
    sequences = sequences or dense(shapes.queries, shapes.keys)
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
    arrays |= _taking_part(inputs, params, shapes, sequences)
    for name in (name for name in SCALES if inputs.get(name) is not None):
        of_heads = _broadcast(name, inputs[name], shapes.heads)
        arrays[name] = of_heads.reshape(*shapes.rows, shapes.h)
    sunk = inputs["sinks"] is not None
    if sunk:
        arrays |= _with_sinks(arrays, inputs["sinks"], shapes)
    scale, softcap = (
        None if params[name] is None else as_real(params[name], name)
        for name in ("scale", "softcap")
    )
    if softcap is not None:
        POSITIVE.check("softcap", softcap)
    scaling = scale if scale is not None else d**-0.5 if d else 1.0
    arrays["top"] = _top(arrays, scaling, softcap, sunk)
    formula_params = {
        "scale": scale,
        "softcap": softcap,
        "sunk": sunk,
        "rooted": scale is None or scale > 0,
        "group": shapes.group,
    }
    own_shapes = {"dq": q.shape, "dk": k.shape, "dv": v.shape, "lse": output[:-1]}

    def restore(name: str, array: Array) -> Array:
        real = array[..., : shapes.keys, :] if name in ("dk", "dv") else array
        return turn(name, real.reshape(own_shapes.get(name, output)))

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


def _with_sinks(arrays: dict[str, Any], sinks: Array, shapes: _Shapes) -> dict[str, Any]:
    """The arrays with the key that stands for the sink of each head of q."""
    of_heads = _broadcast("sinks", sinks, shapes.lead)[..., None]
    of_queries = np.broadcast_to(of_heads, (*shapes.lead, shapes.queries))
    column = of_queries.reshape(*shapes.stacked, 1)
    scores_shape = (*shapes.stacked, shapes.keys)
    mask, longer = arrays["mask"], dict[str, Any]()
    for name in "kv":
        one = (*shapes.rows, shapes.h, 1, arrays[name].shape[-1])
        nothing = np.zeros(one, arrays[name].dtype)
        longer[name] = np.concatenate([arrays[name], nothing], -2)
    mask = np.zeros(scores_shape, sinks.dtype) if mask is None else mask
    longer["mask"] = np.concatenate([mask.astype(sinks.dtype), column], -1)
    for name in ("keep", "unmasked"):
        if arrays[name] is not None:
            longer[name] = np.concatenate([arrays[name], np.ones(column.shape, bool)], -1)
    return longer


def _heads_first(
    inputs: dict[str, Any], layout: Any
) -> tuple[dict[str, Any], Callable[[str, Array], Array]]:
    """The arrays with the heads in front of queries and keys, and what turns a result back."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}: it must be one of {', '.join(LAYOUTS)}.")
    if layout == LAYOUTS[0]:
        return inputs, lambda name, array: array
    long = [name for name in ("dy", "q", "k", "v") if name in inputs]
    for name in long:
        if inputs[name].ndim < 3:
            raise ValueError(f"{name} has shape {inputs[name].shape}, which has no axis of heads.")

    def turn(name: str, array: Array) -> Array:
        return array if name == "lse" else np.swapaxes(array, -2, -3)

    return inputs | {name: np.swapaxes(inputs[name], -2, -3) for name in long}, turn


def _in_sequences(
    inputs: dict[str, Any], direction: Direction
) -> tuple[dict[str, Any], Sequences | None]:
    """The inputs with their pages gathered; packed sequences, if they are."""
    table, lengths = inputs.get("block_table"), inputs["lengths"]
    is_packed = any(inputs.get(f"cu_seqlens_{of}") is not None for of in "qk")
    if table is not None:
        if direction == "backward":
            raise ValueError("Paged keys, `block_table`, have no backward pass.")
        if lengths is None:
            raise ValueError("Paged keys need `lengths`, the number of keys of each sequence.")
        pages = {name: gathered(inputs[name], table, lengths) for name in "kv"}
        if is_packed:
            pages = {
                name: np.moveaxis(a, 1, 0).reshape(a.shape[1], -1, a.shape[-1])
                for name, a in pages.items()
            }
        else:
            of_rows = {n: inputs[n] for n in ("lengths", "prefix") if inputs[n] is not None}
            pages |= {name: array[:, None] for name, array in of_rows.items()}
        inputs = inputs | pages
    queries, keys = (inputs[name].shape[-2] if inputs[name].ndim > 1 else 0 for name in ("q", "k"))
    if is_packed:
        if table is None and lengths is not None:
            raise ValueError("Packed sequences have no `lengths`: cu_seqlens_k has them.")
        of_pages = None if table is None else lengths
        return inputs | {"lengths": None}, packed(inputs, queries, keys, of_pages)
    if table is None:
        return inputs, None
    sequences = dense(queries, keys)
    return inputs, replace(sequences, keys=lengths[:, None, None])


def _taking_part(
    inputs: dict[str, Any], params: dict[str, Any], shapes: _Shapes, sequences: Sequences
) -> dict[str, Any]:
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
    lengths, prefix, slopes = (inputs[name] for name in ("lengths", "prefix", "alibi_slopes"))
    if lengths is not None:
        if lengths.size and not 0 <= lengths.min() <= lengths.max() <= shapes.keys:
            wrong = next(int(n) for n in lengths.flat if not 0 <= n <= shapes.keys)
            raise ValueError(f"lengths has {wrong}, and k has {shapes.keys} keys.")
        lengths = _broadcast("lengths", lengths, shapes.heads).reshape(*shapes.rows, shapes.h)
    seen = sequences.seen(params["causal"], params["window"], params["causal_block"])
    if slopes is None and params["causal_block"] is None:
        del seen["own"]
    if prefix is not None:
        seen["prefix"] = sequences.start + sequences.of_queries(prefix)
    if sequences.packed is not None:
        seen |= {"begin": sequences.start, "end": sequences.start + sequences.keys}
    of_queries = (*shapes.heads, shapes.queries)
    by_query = {
        name: None
        if (array := seen.get(name)) is None
        else np.tile(_broadcast(name, array, of_queries), shapes.group).reshape(shapes.stacked)
        for name in OF_QUERIES
    }
    if slopes is not None:
        each = _broadcast("alibi_slopes", slopes, shapes.lead)[..., None]
        slopes = np.broadcast_to(each, (*shapes.lead, shapes.queries)).reshape(shapes.stacked)
    return {
        "mask": mask, "keep": keep, "unmasked": unmasked, "lengths": lengths,
        "alibi_slopes": slopes, **by_query,
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


def present(shape: Shape, /, **parts: Any) -> npt.NDArray[np.bool_] | None:
    """Which scores take part; None for all."""
    takes_part: npt.NDArray[np.bool_] | None = None
    places = np.arange(shape[-1])
    lengths = parts.get("lengths")
    by_query = {n: None if (a := parts.get(n)) is None else a[..., None] for n in OF_QUERIES}
    begin, end, first, position, prefix, _ = by_query.values()
    seen = None if position is None else places <= position
    for condition in (
        parts.get("keep"),
        parts.get("unmasked"),
        None if lengths is None else places < lengths[..., None, None],
        None if begin is None else places >= begin,
        None if end is None else places < end,
        seen if seen is None or prefix is None else seen | (places < prefix),
        None if first is None else places >= first,
    ):
        if condition is not None:
            takes_part = condition if takes_part is None else takes_part & condition
    if takes_part is not None and parts.get("sunk"):
        takes_part = takes_part | (places == shape[-1] - 1)
    return None if takes_part is None else np.broadcast_to(takes_part, shape)


def distances(shape: Shape, own: Array, sunk: bool) -> Array:
    """How far each key is from each query; 0 for a sink."""
    places = np.arange(shape[-1])
    away = np.abs(own[..., None] - places)
    return np.where(places == shape[-1] - 1, 0, away) if sunk else away


def _top(arrays: dict[str, Any], scale: float, softcap: float | None, sunk: bool) -> Array:
    """For each query the key of the largest score that takes part, or of one near it."""
    q, k = arrays["q"], arrays["k"]
    *lead, h, m, _ = q.shape
    n, rows = k.shape[-2], math.prod(lead)
    tops = np.zeros((rows, h, m), np.intp)
    flat = {
        name: None if (a := arrays[name]) is None else a.reshape(rows, *a.shape[len(lead) :])
        for name in (*_SCORED, *OF_QUERIES)
    }
    step = max(_ELEMENTS // max(h * m * n, 1), 1)
    for start in range(0, rows if n else 0, step):
        span = slice(start, start + step)
        block = {name: None if array is None else array[span] for name, array in flat.items()}
        with np.errstate(all="ignore"):
            tops[span] = _approximate(block, scale, softcap, sunk).argmax(-1)
    return tops.reshape(*lead, h, m)


def _approximate(block: dict[str, Any], scale: float, softcap: float | None, sunk: bool) -> Array:
    """The scores in float64, -inf where a key takes no part."""
    left, right = to_float64(block["q"]), np.swapaxes(to_float64(block["k"]), -1, -2)
    scores = blas.product(left, right) * scale
    scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
    if block["alibi_slopes"] is not None:
        slopes = to_float64(block["alibi_slopes"])[..., None]
        scores = scores - slopes * distances(scores.shape, block["own"], sunk)
    if block["mask"] is not None:
        scores = scores + to_float64(block["mask"])
    lanes = present(scores.shape, **block, sunk=sunk)
    return scores if lanes is None else np.where(lanes, scores, -np.inf)
