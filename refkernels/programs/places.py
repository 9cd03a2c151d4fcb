"""Places of numbers: where the largest are, and what lies, or is put, at places that are computed.

A place is a whole number that comparisons give, so that its enclosure holds one where the order is
certain. With x's row of n numbers,

    rank_i = how many x_j are before x_i        place_k = sum_i i [rank_i = k]

An element at a computed place is chosen from all that it may be, by comparing the place with each.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from refkernels.contexts.gradient import Gradient, node
from refkernels.contexts.value import Mask
from refkernels.ops.ordering import ascending
from refkernels.programs.calls import Low, equal

MOST = 1 << 22  # comparisons of one call


def order(c: Any, x: Any, dim: Any, k: int, largest: bool, first: bool) -> Any:
    """The places of the first k numbers of an axis in order, in the shape of the result; of equal
    ones the first or, unless `first`, any."""
    rows = _lifted(c, c.rows(c.value(x), dim), largest, k)
    n = rows.shape[-1]
    _limited(c, math.prod(rows.shape) * n)
    pair = (c.reshape(rows, (*rows.shape, 1)), c.reshape(rows, (*rows.shape[:-1], 1, n)))
    mine, other = pair if largest else pair[::-1]
    above, below = _before(c.xp, mine, other), _before(c.xp, other, mine)
    before = np.tri(n, k=-1, dtype=bool) & first
    yes = above.yes | (before & below.no)
    no = below.yes | (before.T & above.no) | np.eye(n, dtype=bool)
    rank = _counted(c, Mask(yes, no), c.number(1))
    rank = c.reshape(rank, (*rows.shape[:-1], 1, n))
    chosen = equal(c, rank, c.array(np.arange(k, dtype=np.float64)[:, None]))
    found = c.reshape(_counted(c, chosen, c.array(np.arange(n))), (*rows.shape[:-1], k))
    return back(c, found, dim, len(x.shape))


def _before(xp: Any, a: Any, b: Any) -> Any:
    """a < b, as the context decides it for places."""
    while isinstance(xp, Gradient):
        xp, a, b = xp.below, node(a).value, node(b).value
    return getattr(xp, "before", xp.less)(a, b)


def _counted(c: Any, mask: Any, numbers: Any) -> Any:
    return c.round(c.xp.sum(c.where(mask, numbers, c.number(0))))


def back(c: Any, rows: Any, dim: Any, rank: int) -> Any:
    """The last axis where `dim` was."""
    if not isinstance(dim, int) or not rank:
        return c.reshape(rows, c.shape)
    return c.move(lambda a: np.moveaxis(a, -1, dim), rows)


def _lifted(c: Any, rows: Any, largest: bool, k: int) -> Any:
    """Rows whose masked numbers come after all others."""
    if not isinstance(rows, Low):
        return rows
    if not largest or (~rows.low).sum(-1).min(initial=k) < k:
        raise c.refuse("puts a masked -inf into order")
    floor = -c.xp.max(c.where(rows.low, c.number(0), abs(rows.value)))
    return c.where(rows.low, 2 * floor - 1, rows.value)


def largest_place(c: Any, x: Any, dim: Any = None, *_: Any, largest: bool = True) -> Any:
    """argmax: of equal numbers the first."""
    return c.reshape(order(c, x, dim, 1, largest, True), c.shape)


def top(
    c: Any, x: Any, k: int, dim: int = -1, largest: bool = True, *_: Any, first: bool = False
) -> Any:
    """The first k numbers in order, and their places, which are computed if they are read."""
    rows = c.rows(x, dim)
    if isinstance(rows, np.ndarray):
        ordered = np.sort(rows, axis=-1)
    else:
        ordered = ascending(c.xp, _lifted(c, c.value(rows), largest, k))
    taken = c.move(lambda a: (a[..., ::-1] if largest else a)[..., :k], ordered)
    return back(c, taken, dim, len(x.shape)), lambda: order(c, x, dim, k, largest, first)


def sorted_(c: Any, x: Any, dim: int = -1, descending: bool = False, first: Any = False) -> Any:
    return top(c, x, x.shape[dim] if x.shape else 1, dim, descending, first=bool(first))


def smallest(c: Any, x: Any, k: Any = None, dim: Any = None, *_: Any) -> Any:
    """The k-th smallest number and its place; by default the middle of n, or before the middle."""
    rows = c.rows(x, dim)
    k = k or (rows.shape[-1] + 1) // 2
    values, places = top(c, rows, k, -1, False)
    pick = lambda found: c.reshape(c.take(found, np.array([k - 1]), -1), c.shape)  # noqa: E731
    return pick(values), lambda: pick(places())


# --- elements at places ---------------------------------------------------------------------------


def _limited(c: Any, number: int) -> None:
    if number > MOST:
        raise c.refuse(f"makes {number} comparisons for places that are computed")


def _known(
    c: Any, shape: Sequence[int], indices: Sequence[Any]
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The indices with every number that computed ones among them may be, and the mask of where in
    the result they are these; None if none is computed."""
    known = [slice(None) if i is None else i for i in indices]
    computed = [k for k, i in enumerate(known) if not isinstance(i, slice | np.ndarray)]
    if not computed:
        yield tuple(known), None
        return
    taken = [k for k, i in enumerate(indices) if i is not None]
    together = taken[-1] - taken[0] + 1 == len(taken)  # else their axes come first
    behind = len(shape) - (taken[-1] + 1 if together else len(taken))
    whole = np.broadcast_shapes(*(indices[k].shape for k in taken))
    _limited(c, math.prod(shape[k] for k in computed) * math.prod(whole))
    places = dict[int, Any]()
    for k in computed:
        place = c.reshape(c.broadcast(c.value(indices[k]), whole), (*whole, *(1,) * behind))
        places[k] = c.where(place < 0, place + shape[k], place)
    for numbers in itertools.product(*(range(shape[k]) for k in computed)):
        masks = [equal(c, places[k], c.number(n)) for k, n in zip(computed, numbers, strict=True)]
        for k, number in zip(computed, numbers, strict=True):
            known[k] = np.full(whole, number)
        yield tuple(known), functools.reduce(operator.and_, masks)


def index(c: Any, x: Any, indices: Any) -> Any:
    """x[i, j, ...] for arrays of integers, None for a whole axis."""
    result: Any = None
    for known, mask in _known(c, x.shape, indices):
        part = c.move(lambda a, known=known: a[known], x)
        result = part if result is None else c.where(mask, c.plain(part), c.plain(result))
    return result


def gather(c: Any, x: Any, dim: int, places: Any, *_: Any) -> Any:
    if not x.shape or 0 in places.shape:  # places of none have any number of axes
        return c.broadcast(c.number(0) if x.shape else x, c.shape)
    return index(c, x, _grid(places, dim))


def _grid(places: Any, dim: int) -> list[Any]:
    """The index of what lies at `places` of an axis, and where they lie on the others."""
    grid: list[Any] = list(np.indices(places.shape, sparse=True))
    grid[dim] = places
    return grid


def put(c: Any, x: Any, source: Any, place: Any) -> Any:
    """x with the elements of source at a place."""

    def change(a: Any, b: Any) -> Any:
        out = np.array(a)
        out[place] = b
        return out

    return c.move(change, x, source)


def index_put(c: Any, x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """x with numbers at places, or added there; or one where a condition holds."""
    if isinstance(indices[0], Mask):
        behind = len(x.shape) - len(indices[0].shape)
        if len(values.shape) > behind and math.prod(values.shape) > 1:
            raise c.refuse("puts numbers one after the other where a computed condition holds")
        mask = c.reshape(indices[0], (*indices[0].shape, *(1,) * behind))
        return c.where(mask, c.plain(values), c.plain(x))
    flat, parts, places = np.arange(math.prod(x.shape)).reshape(x.shape), list[Any](), list[Any]()
    for known, mask in _known(c, x.shape, indices):
        place = flat[known]
        part = c.broadcast(values, place.shape)
        if accumulate:
            parts.append(c.value(part) if mask is None else c.where(mask, part, c.number(0)))
            places.append(place)
            continue
        if mask is not None:
            if len(np.unique(place)) < place.size:
                raise c.refuse("puts several elements at places that are computed, in some order")
            own = c.move(lambda a, known=known: a[known], c.plain(x))
            x, part = c.value(x), c.where(mask, c.plain(part), own)
        x = put(c, x, part, known)
    return _added_at(c, x, parts, places) if accumulate else x


def _added_at(c: Any, x: Any, values: Sequence[Any], places: Sequence[Any]) -> Any:
    """x is a term of each sum, which may come first."""
    size, parts = math.prod(x.shape), (c.value(x), *values)
    flat = c.move(lambda *arrays: np.concatenate([a.reshape(-1) for a in arrays]), *parts)
    at = np.concatenate([np.arange(size), *(place.reshape(-1) for place in places)])
    return c.reshape(c.scatter_add(flat, at, size), x.shape)


def scatter(
    c: Any, x: Any, dim: int, places: Any, source: Any, *_: Any, accumulate: bool = False
) -> Any:
    """x with the elements of source, or a number, at places of an axis; one after the other."""
    if 0 in places.shape:
        return x
    if not x.shape:  # a row of one
        rows = (a if isinstance(a, int | float) else c.reshape(a, (-1,)) for a in (places, source))
        return c.reshape(scatter(c, c.reshape(x, (1,)), 0, *rows, accumulate=accumulate), ())
    if isinstance(source, int | float):
        source = np.asarray(source) if isinstance(x, np.ndarray) else c.value(source)
    else:
        source = c.move(lambda a: a[tuple(map(slice, places.shape))], source)
    source = c.broadcast(source, places.shape)
    if accumulate or isinstance(places, np.ndarray):
        return index_put(c, x, _grid(places, dim), source, accumulate)
    for one, part in _steps(c, dim, places, source):
        x = index_put(c, x, _grid(one, dim), part)
    return x


def _steps(c: Any, dim: int, places: Any, source: Any) -> Iterator[tuple[Any, Any]]:
    """Places and what is put there, one after the other along an axis."""
    source = c.move(lambda a: a[tuple(map(slice, places.shape))], source)
    for k in range(places.shape[dim]):
        yield tuple(c.take(item, np.array([k]), dim) for item in (places, source))


def combined(c: Any, x: Any, dim: int, at: Any, source: Any, way: str, own: bool = True) -> Any:
    """x, if it counts, and the elements of source, combined at places of an axis."""
    x, source, at = c.plain(x), c.plain(source), c.index(at)
    way = {"add": "sum", "multiply": "prod"}.get(way, way)  # as `scatter` calls them
    if not x.shape:
        raise c.refuse("combines single numbers")
    number = np.full(x.shape, int(own))  # of what is combined
    if combine := {"prod": operator.mul, "amax": c.maximum, "amin": c.minimum}.get(way):
        for one, part in _steps(c, dim, at, source):
            grid = tuple(_grid(one, dim))
            x = put(c, x, c.where(number[grid] > 0, combine(index(c, x, grid), part), part), grid)
            number[grid] = 1
        return x
    np.add.at(number, tuple(_grid(at, dim)), 1)
    total = scatter(c, x if own else scatter(c, x, dim, at, 0), dim, at, source, accumulate=True)
    return total if way == "sum" else total / c.array(np.maximum(number, 1))
