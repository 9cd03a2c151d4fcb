"""Which keys belong to a query's sequence, and its own place among them: packed sequences, paged
keys, and what causality, its blocks, a window and a prefix let a query see.

Packed. Sequence s has the queries cu_seqlens_q[s] to cu_seqlens_q[s + 1] of one axis, and the keys
cu_seqlens_k[s] to cu_seqlens_k[s + 1] of another (FlashAttention's varlen).

Paged. k and v are a pool of pages (pages, heads, size, d); sequence s has the keys of the pages
block_table[s, 0], block_table[s, 1], ..., up to lengths[s] (vLLM).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.scalars import as_count
from refkernels.arithmetic.wording import shown

Array = npt.NDArray[Any]
CAUSAL = ("none", "top_left", "bottom_right")
_NAMES = ("cu_seqlens_q", "cu_seqlens_k")


@dataclass(frozen=True)
class Sequences:
    """For each query, in arrays that broadcast to (*rows, heads, queries): its place in its own
    sequence, the first key of that, its number of keys and of queries. `packed`: the number of each
    query's sequence; None where every row is one."""

    place: Array
    start: Array
    keys: Array
    queries: Array
    packed: Array | None = None

    def of_queries(self, array: Array) -> Array:
        """One number for each query, from one for each sequence."""
        return array[..., None] if self.packed is None else np.append(array, 0)[self.packed]

    def seen(self, causal: Any, window: Any, block: Any) -> dict[str, Array | None]:
        """Each query's own place among all keys, and the first and the last key that it sees; None
        for all before, or after."""
        if causal not in CAUSAL:
            raise ValueError(f"causal is {causal!r}: it must be one of {', '.join(CAUSAL)}.")
        sides = (-1, -1) if window is None else window
        if not isinstance(sides, tuple | list) or len(sides) != 2:
            raise ValueError(f"window is {shown(window)}: it must be (left, right).")
        most = int(self.keys.max(initial=0) + self.queries.max(initial=0))  # beyond, all is alike
        left, right = (min(as_count(side, "window", least=-1), most) for side in sides)
        size = 1 if block is None else as_count(block, "causal_block", least=1)
        own = self.place + self.start
        own = own if causal == "top_left" else own + self.keys - self.queries
        last = own + right if right >= 0 else None
        if causal != "none":
            inside = own - self.start
            last = self.start + (inside // size + 1) * size - 1
        return {"own": own, "first": own - left if left >= 0 else None, "position": last}


def dense(queries: int, keys: int) -> Sequences:
    return Sequences(
        np.arange(queries), np.zeros((), np.intp), *(np.asarray(n) for n in (keys, queries))
    )


def packed(
    inputs: dict[str, Any], queries: int, keys: int, pages: Array | None = None
) -> Sequences:
    """`pages`: the numbers of keys of paged sequences, each of which has an equal share of the
    `keys`; then there is no cu_seqlens_k."""
    ends: dict[str, Any] = {name: inputs.get(name) for name in _NAMES}
    for (name, array), most in zip(ends.items(), (queries, keys), strict=True):
        if array is None and pages is not None and name == _NAMES[1]:
            continue
        if array is None or array.ndim != 1 or not array.size:
            given = "is absent" if array is None else f"has shape {array.shape}"
            raise ValueError(f"{name} {given}: packed sequences need both, {' and '.join(_NAMES)}.")
        if array[0] != 0 or (np.diff(array) < 0).any() or array[-1] > most:
            raise ValueError(f"{name} must rise from 0 to at most {most}.")
    of_q = ends[_NAMES[0]]
    count = len(of_q) - 1
    if pages is None:
        starts, lengths = ends[_NAMES[1]][:-1], np.diff(ends[_NAMES[1]])
    else:
        starts, lengths = np.arange(count) * (keys // max(count, 1)), pages
    prefix = inputs.get("prefix")
    if prefix is not None and prefix.shape != (count,):
        raise ValueError(
            f"prefix has shape {prefix.shape}: {count} packed sequences need ({count},)."
        )
    if len(lengths) != count:
        raise ValueError(f"cu_seqlens_q has {count} sequences, and the keys have {len(lengths)}.")
    place = np.arange(queries)
    # Queries beyond the last sequence are of one more, which is empty.
    number = np.searchsorted(of_q, place, "right") - 1
    starts, lengths, own = (np.append(a, 0) for a in (starts, lengths, np.diff(of_q)))
    return Sequences(place - of_q[number], starts[number], lengths[number], own[number], number)


def gathered(pages: Array, table: Array, lengths: Array) -> Array:
    """(sequences, heads, keys, d): the pages that belong to each sequence, one after the other, and
    zeros from its length on. Raises ValueError for a page that is not there."""
    if pages.ndim != 4 or table.ndim != 2 or lengths.shape != table.shape[:1]:
        raise ValueError(
            "Paged keys need k[pages h n d], v[pages h n e], block_table[sequences t] and "
            f"lengths[sequences]; they have {pages.shape}, {table.shape} and {lengths.shape}."
        )
    heads, size, width = pages.shape[1:]
    inside = np.arange(table.shape[1] * size) < lengths[:, None]
    needed = inside[:, :: max(size, 1)]
    wanted = table[needed]
    if wanted.size and not 0 <= wanted.min() <= wanted.max() < len(pages):
        raise ValueError(f"block_table has a page that is not one of the {len(pages)}.")
    keys = np.moveaxis(pages[np.where(needed, table, 0)], 2, 1)
    keys = keys.reshape(len(table), heads, -1, width)
    return np.where(inside[:, None, :, None], keys, keys.dtype.type(0))
