"""Operators of ATen that move elements, and reductions. One line each."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.programs import places
from refkernels.programs.calls import Low, numbers
from refkernels.programs.places import put

Rule = Callable[..., Any]


def constant(c: Any, values: npt.NDArray[Any]) -> Any:
    """Numbers of the program: integers as they are, floats as values; -inf is a mask."""
    if not c.tensor.is_float:
        return values.astype(c.tensor.dtype)
    low = values == -np.inf
    value = c.array(np.where(low, 0, values).astype(np.float64))
    return Low(value, low) if low.any() else value


def full(c: Any, number: Any) -> Any:
    single = c.tensor.is_float and c.tensor.dtype != "float64"
    return constant(c, np.full(c.shape, float(np.float32(number)) if single else number))


def arange(c: Any, start: Any, end: Any, step: Any, *_: Any) -> Any:
    return constant(c, np.arange(math.ceil((end - start) / step)) * step + start)


def slice_(c: Any, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return c.move(lambda a: a[_place(x.shape, dim, slice(start, end, step))], x)


def _place(shape: Sequence[int], dim: int, at: Any) -> tuple[Any, ...]:
    place: list[Any] = [slice(None)] * len(shape)
    place[dim] = at
    return tuple(place)


def concatenate(c: Any, parts: Any, dim: int = 0) -> Any:
    listed = [part for part in parts if part.shape != (0,)]
    return c.move(lambda *arrays: np.concatenate(arrays, axis=dim), *listed)


def split(c: Any, x: Any, size: Any, dim: int = 0) -> tuple[Any, ...]:
    """Pieces as long as what the node gives says."""
    ends = np.cumsum([0, *(tensor.shape[dim] for tensor in c.node.gives)])
    return tuple(slice_(c, x, dim, int(a), int(b)) for a, b in itertools.pairwise(ends))


def padded(c: Any, x: Any, pad: Sequence[int], value: Any = 0) -> Any:
    """Zeros, or a number, before and behind the last axes; negative lengths cut."""
    fill = np.asarray(value) if isinstance(x, np.ndarray) else c.value(value)
    for k, ends in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        axis = len(x.shape) - 1 - k
        inner = slice_(c, x, axis, max(-ends[0], 0), x.shape[axis] - max(-ends[1], 0))
        shapes = ((*x.shape[:axis], max(n, 0), *x.shape[axis + 1 :]) for n in ends)
        before, behind = (c.broadcast(fill, shape) for shape in shapes)
        x = concatenate(c, [before, inner, behind], axis)
    return x


def continued(place: Callable[[Any, int], Any], c: Any, x: Any, pad: Sequence[int]) -> Any:
    """Each axis longer at both ends. `place`: where places beyond an axis of n lie in it."""
    for k, (before, behind) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        axis, n = len(x.shape) - 1 - k, x.shape[-1 - k]
        x = c.take(x, place(np.arange(-before, n + behind), n), axis)
    return x


_reflected = partial(continued, lambda i, n: n - 1 - abs(n - 1 - abs(i)))
_replicated = partial(continued, lambda i, n: np.clip(i, 0, n - 1))


def nearest(c: Any, x: Any, size: Any, scales: Any = None) -> Any:
    """The nearest place below, computed in float32 as the operator does."""
    for axis in range(2, len(c.shape)):
        n, m = x.shape[axis], c.shape[axis]
        step = np.float32(1 / scales[axis - 2]) if scales else np.float32(n) / np.float32(m)
        place = np.floor(np.arange(m, dtype=np.float32) * step).astype(int)
        x = c.take(x, np.minimum(place, n - 1), axis)
    return x


def diagonal_scatter(c: Any, x: Any, source: Any, k: int = 0, i: int = 0, j: int = 1) -> Any:
    places = np.diagonal(np.arange(math.prod(x.shape)).reshape(x.shape), k, i, j)
    return put(c, x, source, np.unravel_index(places, x.shape))


def masked_scatter(c: Any, x: Any, mask: Any, source: Any) -> Any:
    """x with the first numbers of source, in their order, where the mask holds."""
    known = np.broadcast_to(c.index(mask), c.shape)
    first = c.take(c.reshape(source, (-1,)), np.arange(np.count_nonzero(known)), 0)
    return put(c, c.broadcast(x, c.shape), first, known)


def unfold(c: Any, x: Any, dim: int, size: int, step: int) -> Any:
    """Windows along an axis, on a new last axis."""
    x = x if x.shape else c.reshape(x, (1,))
    dim %= len(x.shape)
    starts = np.arange((x.shape[dim] - size) // step + 1) * step
    windows = c.take(x, starts[:, None] + np.arange(size), dim)
    return c.reshape(c.move(lambda a: np.moveaxis(a, dim + 1, -1), windows), c.shape)


def as_strided(
    c: Any, x: Any, shape: Any, strides: Any, first: Any, own: Sequence[int], begin: int
) -> Any:
    """What lies at places of the storage in which x lies with its own strides."""
    first = begin if first is None else first
    places, known = (
        start + np.tensordot(np.asarray(steps, np.int64), np.indices(lengths), 1)
        for lengths, steps, start in ((shape, strides, first), (x.shape, own, begin))
    )
    storage = np.full(max(places.max(initial=0), known.max(initial=0)) + 1, -1)
    storage[known] = np.arange(known.size).reshape(known.shape)
    index = np.broadcast_to(storage[places], c.shape)
    if (index < 0).any():
        raise c.refuse("reads elements that its operand does not have")
    return c.take(c.reshape(x, (-1,)), index, 0)


# --- reductions -----------------------------------------------------------------------------------


def reduction(name: str) -> Rule:
    return numbers(lambda c, x, dims=None, *_: c.reduced(name, x, dims), 1)


def largest(c: Any, x: Any, dims: Any = None, *_: Any) -> Any:
    """The maximum; of -inf only where all are."""
    if not isinstance(x, Low):
        return reduction("max")(c, x, dims)
    low = c.rows(x.low, dims)
    some = c.reshape(low.all(axis=-1), c.shape)
    value = c.reshape(c.xp.max(_lifted(c, c.rows(x.value, dims), low)), c.shape)
    return Low(value, some) if some.any() else value


def _lifted(c: Any, rows: Any, low: npt.NDArray[Any]) -> Any:
    """Rows with their first number that is not masked where they are masked."""
    first = c.xp.take_along_axis(rows, low.argmin(axis=-1)[..., None])
    return c.where(low, first, rows)


def smallest(c: Any, x: Any, dims: Any = None, *_: Any) -> Any:
    return -largest(c, -(x if isinstance(x, np.ndarray) else c.plain(x)), dims)


def variance_and_mean(c: Any, x: Any, dims: Any = None, correction: Any = None, *_: Any) -> Any:
    rows = c.rows(c.plain(x), dims)
    average, n = c.mean(rows), rows.shape[-1] - Fraction(1 if correction is None else correction)
    variance = c.xp.sum(c.square(rows - average)) / c.number(n)
    return c.reshape(variance, c.shape), c.reshape(average, c.shape)


def any_(c: Any, x: Any, dims: Any = None, *_: Any) -> Any:
    truth = c.truth(x)
    if isinstance(truth, np.ndarray):
        return c.rows(truth, dims).any(axis=-1).reshape(c.shape)
    return c.reduced("max", c.value(truth), dims) > c.number(Fraction(1, 2))


def norm(c: Any, x: Any, order: Any = 2, dims: Any = None, *_: Any) -> Any:
    """Vector norms of order 0, 1, 2, infinity and others."""
    rows = c.rows(c.plain(x), dims)
    order = 2 if order is None else order
    if order == 2:
        return c.reshape(c.xp.norm(rows), c.shape)
    if math.isinf(order):
        return c.reshape(c.xp.max(abs(rows)) if order > 0 else -c.xp.max(-abs(rows)), c.shape)
    if order in (0, 1):
        return c.reshape(c.xp.sum(abs(rows) if order else c.value(c.truth(rows))), c.shape)
    total = c.xp.sum(c.real_power(abs(rows), c.scalar(order)))
    return c.reshape(c.real_power(total, 1 / c.scalar(order)), c.shape)


def distances(c: Any, a: Any, b: Any, order: Any, *_: Any) -> Any:
    """The norms of the differences of each row of a and each of b."""
    a, b = c.plain(a), c.plain(b)
    of_rows = c.reshape(a, (*a.shape[:-1], 1, a.shape[-1]))
    of_columns = c.reshape(b, (*b.shape[:-2], 1, *b.shape[-2:]))
    return norm(c, of_rows - of_columns, order, [-1])


def cumulative(combine: Callable[..., Any], c: Any, x: Any, dim: int, *_: Any) -> Any:
    """By Hillis and Steele."""
    n, step = x.shape[dim] if x.shape else 1, 1
    while step < n:
        before, earlier = (c.take(x, np.arange(k), dim) for k in (step, n - step))
        later = c.take(x, np.arange(step, n), dim)
        x, step = concatenate(c, [before, combine(later, earlier)], dim), 2 * step
    return x


def cumulative_logsumexp(c: Any, x: Any, dim: int) -> Any:
    """One number after the other, as it is computed."""
    x, sums = c.plain(x), list[Any]()
    for k in range(x.shape[dim] if x.shape else 0):
        one = c.take(x, np.arange(k, k + 1), dim)
        if sums:
            one = c.maximum(sums[-1], one) + c.log1p(c.exp(-abs(sums[-1] - one)))
        sums.append(one)
    return concatenate(c, sums, dim) if sums else x


EMPTY = ("empty.memory_format", "empty_permuted.default", "new_empty_strided.default")  # a shape
RESHAPING = ("view.default", "unsqueeze.default", "squeeze.dims")
COPIES = ("clone.default", "alias.default", "lift_fresh_copy.default")
MOVING: dict[str, Rule] = {
    **dict.fromkeys(RESHAPING, lambda c, x, *_: c.reshape(x, c.shape)),
    **dict.fromkeys(COPIES, lambda c, x, *_: x),
    "detach.default": lambda c, x: c.stop(c.value(x)) if c.tensor.is_float else x,
    "expand.default": lambda c, x, *_: c.broadcast(x, c.shape),
    "permute.default": lambda c, x, axes: c.transpose(x, axes),
    "slice.Tensor": slice_,
    "select.int": lambda c, x, dim, at: c.move(lambda a: a[_place(x.shape, dim, at)], x),
    "index.Tensor": places.index,
    "index_select.default": lambda c, x, dim, i: (
        places.index(c, x, [*[None] * (dim % len(x.shape)), i]) if x.shape else x
    ),
    "gather.default": places.gather,
    "embedding.default": lambda c, w, i, *_: places.index(c, w, [i]),
    "cat.default": concatenate,
    "split_with_sizes.default": split,
    "constant_pad_nd.default": padded,
    **{f"reflection_pad{k}d.default": _reflected for k in (1, 2, 3)},
    **{f"replication_pad{k}d.default": _replicated for k in (1, 2, 3)},
    **{f"upsample_nearest{k}d.vec": nearest for k in (1, 2, 3)},
    "slice_scatter.default": lambda c, x, s, dim=0, start=None, end=None, step=1: put(
        c, x, s, _place(x.shape, dim, slice(start, end, step))
    ),
    "select_scatter.default": lambda c, x, s, dim, at: put(c, x, s, _place(x.shape, dim, at)),
    "diagonal_scatter.default": diagonal_scatter,
    "copy.default": lambda c, x, source, *_: c.broadcast(source, c.shape),
    "masked_scatter.default": masked_scatter,
    "index_put.default": places.index_put,
    **dict.fromkeys(("scatter.src", "scatter.value"), places.scatter),
    "diagonal.default": lambda c, x, k=0, i=0, j=1: c.move(lambda a: np.diagonal(a, k, i, j), x),
    "flip.default": lambda c, x, dims: c.move(lambda a: np.flip(a, tuple(dims)), x),
    "repeat.default": lambda c, x, times: c.move(lambda a: np.tile(a, tuple(times)), x),
    "unfold.default": unfold,
    "as_strided.default": as_strided,
    **dict.fromkeys(EMPTY, lambda c, *_: full(c, 0)),
    **dict.fromkeys(("full.default", "full_like.default"), lambda c, _, n, *__: full(c, n)),
    "scalar_tensor.default": lambda c, number, *_: full(c, number),
    "arange.start_step": arange,
    "max.dim": lambda c, x, dim, *_: (largest(c, x, dim), lambda: places.largest_place(c, x, dim)),
    "min.dim": lambda c, x, dim, *_: (
        smallest(c, x, dim), lambda: places.largest_place(c, x, dim, largest=False)
    ),
    **dict.fromkeys(("amax.default", "max.default"), largest),
    **dict.fromkeys(("amin.default", "min.default"), smallest),
    "argmax.default": places.largest_place,
    "argmin.default": partial(places.largest_place, largest=False),
    "sort.default": places.sorted_,
    "sort.stable": lambda c, x, first, dim=-1, down=False: places.sorted_(c, x, dim, down, first),
    "topk.default": places.top,
    "kthvalue.default": places.smallest,
    **dict.fromkeys(
        ("median.default", "median.dim"), lambda c, x, *dim: places.smallest(c, x, None, *dim)
    ),
    **dict.fromkeys(("any.default", "any.dim", "any.dims"), any_),
}  # fmt: skip
REDUCTIONS: dict[str, Rule] = {
    **dict.fromkeys(("sum.default", "sum.dim_IntList"), reduction("sum")),
    **dict.fromkeys(("prod.default", "prod.dim_int"), reduction("prod")),
    **dict.fromkeys(("mean.default", "mean.dim"), reduction("mean")),
    "var.correction": lambda c, *given: variance_and_mean(c, *given)[0],
    "var_mean.correction": variance_and_mean,
    "linalg_vector_norm.default": norm,
    "_cdist_forward.default": distances,
    "cumsum.default": numbers(lambda c, x, dim, *_: c.cumsum(x, axis=dim) if x.shape else x, 1),
    "cumprod.default": numbers(partial(cumulative, operator.mul), 1),
    "cummax.default": numbers(lambda c, x, dim: (cumulative(c.maximum, c, x, dim), None), 1),
    "cummin.default": numbers(lambda c, x, dim: (cumulative(c.minimum, c, x, dim), None), 1),
    "logcumsumexp.default": cumulative_logsumexp,
    "scatter_add.default": partial(places.scatter, accumulate=True),
    **dict.fromkeys(("scatter.reduce", "scatter_reduce.two"), places.combined),
    "_pdist_forward.default": lambda c, x, order=2: norm(
        c, operator.sub(*(c.take(c.plain(x), i, 0) for i in np.triu_indices(x.shape[0], 1))),
        order, [-1],
    ),
}  # fmt: skip
