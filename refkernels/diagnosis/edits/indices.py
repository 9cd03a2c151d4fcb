"""Indices: an array read at shifted, reversed, transposed or repeated indices; another mask; an
axis in another order throughout, outputs at shifted indices, parts of an output.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from refkernels.contexts.graph import Node, apply
from refkernels.diagnosis.edits.catalogue import Program, by, rule

Change = Callable[[Any], Any]
_LARGEST_BLOCK = 128


@rule("index_differs", "index")  # x[i] -> x[i + 1], x[0], x[n - 1 - i]
def other_indices(program: Program) -> Iterator[Any]:
    for node in program.inputs:
        for how, axis, change in changes_of(node.shape):
            moved = by(node)(lambda xp, v, change=change: xp.rearrange(change, v))
            yield node, {node: moved}, {"part": node, "how": how, "axis": axis}


@rule("read_along_other_axis", "term")  # a number of each row, read as one of each column
def turned_repeats(program: Program) -> Iterator[Any]:
    for node in program.nodes:
        turned = by(node)(lambda xp, v: xp.rearrange(lambda a: np.swapaxes(a, -1, -2), v))
        if len(node.shape) < 2:
            continue
        n, m = node.shape[-2:]
        repeated = node.op == "broadcast" and node.operands[0].shape[-2:] != node.shape[-2:]
        square = {user.shape[-2:] for user in program.users.get(node, ())} & {(n, n), (m, m)}
        if n == m > 1 if repeated else 1 in (n, m) and n != m and square:
            yield node, {node: turned}, {"part": node}


def changes_of(shape: tuple[int, ...]) -> Iterator[tuple[str, int, Change]]:
    """Movements that keep the shape, by name, with the axis."""
    wide = [axis for axis, n in enumerate(shape) if n > 1]
    for axis in wide:
        yield "next", axis, partial(np.roll, shift=-1, axis=axis)
        yield "previous", axis, partial(np.roll, shift=1, axis=axis)
        yield "reversed", axis, partial(np.flip, axis=axis)
        yield "first", axis, partial(_one_for_all, index=0, axis=axis)
        yield "last", axis, partial(_one_for_all, index=-1, axis=axis)
        if shape[axis] % 2 == 0 and shape[axis] > 2:
            yield "interleaved", axis, partial(_dealt, parts=2, axis=axis)
            yield "halved", axis, partial(_dealt, parts=shape[axis] // 2, axis=axis)
    if len(wide) > 1:
        yield "turned", wide[-2], partial(np.flip, axis=tuple(wide[-2:]))
    for k, first in enumerate(wide):
        for second in wide[k + 1 :]:
            swapped = partial(np.swapaxes, axis1=first, axis2=second)
            if shape[first] == shape[second]:
                yield "transposed", first, swapped
            # A reshape where a transposition was meant.
            yield "reshaped", first, lambda a, to=swapped: to(a).reshape(a.shape)  # type: ignore


def by_parts(shape: tuple[int, ...]) -> Iterator[tuple[str, int, Change]]:
    """Movements by parts of an axis, and rows that begin one element early; named by the index that
    is read in place of i."""
    for axis, n in enumerate(shape):
        if n % 2 == 0 and n > 2:  # the digits of a byte of two
            yield "i ^ 1", axis, partial(np.take, indices=np.arange(n) ^ 1, axis=axis)
            yield f"(i + {n // 2}) % {n}", axis, partial(np.roll, shift=n // 2, axis=axis)
        places = np.arange(n)
        beside = {"max(i - 1, 0)": places - 1, f"min(i + 1, {n - 1})": places + 1}
        for how, others in beside.items() if n > 2 else ():
            yield how, axis, partial(np.take, indices=others.clip(0, n - 1), axis=axis)
        for k in (k for k in range(2, n) if n % k == 0):
            yield f"i // {k}", axis, partial(np.take, indices=places // k, axis=axis)
            yield f"i % {k}", axis, partial(np.take, indices=places % k, axis=axis)
            if 2 < k < n // 2:
                how = f"{n // k} (i % {k}) + i // {k}"
                yield how, axis, partial(_dealt, parts=k, axis=axis)
    if len(shape) > 1 and shape[-1] > 1:
        yield "short rows", len(shape) - 1, _short_rows
    for pair in itertools.combinations(range(len(shape)), 2):
        n, m = (shape[axis] for axis in pair)
        for k in (k for k in range(2, n) if n == m and n % k == 0):
            yield f"tiles (j, i) of {k} × {k}", pair[0], partial(_tiles_turned, k=k, pair=pair)


def _tiles_turned(a: Any, k: int, pair: tuple[int, int]) -> Any:
    """The tile (i, j) of two axes in the place of the tile (j, i)."""
    parts = [(n // k, k) if axis in pair else (n,) for axis, n in enumerate(a.shape)]
    return a.reshape(sum(parts, ())).swapaxes(pair[0], pair[1] + 1).reshape(a.shape)


def _short_rows(a: Any) -> Any:
    """Rows that begin one element too early each, as with a stride that is one too small."""
    starts = np.arange(a.size // a.shape[-1]) * (a.shape[-1] - 1)
    return a.reshape(-1)[starts[:, None] + np.arange(a.shape[-1])].reshape(a.shape)


def _one_for_all(a: Any, index: int, axis: int) -> Any:
    return np.broadcast_to(np.take(a, [index], axis), a.shape)


def _dealt(a: Any, parts: int, axis: int) -> Any:
    """The first of every part, then the second of every part, and so on."""
    return np.take(a, np.arange(a.shape[axis]).reshape(parts, -1).T.reshape(-1), axis)


@rule("mask_differs", "index")  # a window wider by one, causal by blocks, another batch's mask
def other_masks(program: Program) -> Iterator[Any]:
    for node, copies in _with_copies(program):
        for how, details, change in _masks(node.shape):
            changes = {node: by(node)(lambda xp, mask, change=change: change(mask))}
            changes |= {
                copy: by(node)(partial(_repeated, copy.shape, inverted))
                for copy, inverted in copies.items()
            }
            yield node, changes, {"how": how, **details}


def _with_copies(program: Program) -> Iterator[tuple[Node, dict[Node, bool]]]:
    """Each mask with those that repeat it, and whether they invert it: what a program fills with
    minus infinity, its softmax leaves out."""
    values = {
        mask: np.asarray(program.graph.arrays[mask.option], bool)
        for mask in program.masks
        if mask.shape
    }
    seen: set[Node] = set()
    for node in sorted(values, key=lambda node: values[node].size):
        copies = {
            other: inverted
            for other, inverted in itertools.product(values, (False, True))
            if other.shape[len(other.shape) - len(node.shape) :] == node.shape and other not in seen
            if np.array_equal(np.broadcast_to(values[node] ^ inverted, other.shape), values[other])
        }
        if node not in seen:
            yield node, {other: how for other, how in copies.items() if other is not node}
        seen |= copies.keys()


def _repeated(shape: tuple[int, ...], inverted: bool, xp: Any, mask: Any) -> Any:
    return np.broadcast_to(mask ^ inverted, shape)


def _masks(shape: tuple[int, ...]) -> Iterator[tuple[str, dict[str, Any], Change]]:
    yield "inverted", {}, np.logical_not
    yield "all", {}, np.ones_like
    yield "none", {}, np.zeros_like
    for axis in (axis for axis, n in enumerate(shape) if n > 1):
        for step in (-1, 1):
            for how in ("shifted", "wider", "narrower"):
                yield how, {"axis": axis, "step": step}, partial(_moved, how, step, axis)
        block = 2
        while block <= min(shape[axis], _LARGEST_BLOCK):
            for end in ("first", "last"):
                details = {"axis": axis, "block": block, "end": end}
                yield "blocks", details, partial(_by_blocks, axis=axis, block=block, end=end)
            block *= 2
    for how, axis, change in changes_of(shape):
        yield how, {"axis": axis}, change


def _moved(how: str, step: int, axis: int, mask: Any) -> Any:
    """Shifted along the axis, with False from outside; or joined with what it was, or met."""
    base = ~mask if how == "narrower" else mask
    shifted = np.roll(base, step, axis)
    edge = [slice(None)] * mask.ndim
    edge[axis] = slice(0, step) if step > 0 else slice(step, None)
    shifted[tuple(edge)] = False
    return {"shifted": shifted, "wider": mask | shifted, "narrower": mask & ~shifted}[how]


def _by_blocks(mask: Any, axis: int, block: int, end: str) -> Any:
    """Every index of a block has the mask of the block's first or last."""
    n = mask.shape[axis]
    starts = np.arange(n) // block * block
    return np.take(mask, np.minimum(starts + (block - 1 if end == "last" else 0), n - 1), axis)


Places = Any


@rule("other_layout", "index")  # y = f(x) -> P y = f(P x): pairs for halves, a reversed axis
def other_layouts(program: Program) -> Iterator[Any]:
    outputs = [node for node in dict.fromkeys(program.graph.outputs) if node and node.shape]
    wide = [node for node in program.inputs if node.shape[-1] > 1]
    for n in dict.fromkeys(node.shape[-1] for node in outputs):
        inside = [node for node in wide if node.shape[-1] == n]
        halves = {2 * m for node in program.nodes for m in node.shape[-1:] if m > 1} | {n}
        for how, order in _orders(n, sorted(h for h in halves if h <= n and h % 2 == 0)):
            back = np.argsort(order)
            changes = {node: _reordered(node, order) for node in inside}
            changes |= {node: _reordered(node, back) for node in outputs if node.shape[-1] == n}
            if inside and not set(inside) & set(outputs):
                yield outputs[0], changes, {"how": how, "axis": -1}


def _orders(n: int, halves: list[int]) -> Iterator[tuple[str, Places]]:
    """Orders of n elements, by name."""
    yield "reversed", np.arange(n)[::-1]
    for wide in halves:
        rest = np.arange(wide, n)
        yield "pairs", np.r_[np.arange(wide).reshape(-1, 2).T.reshape(-1), rest]
        if wide > 2:
            yield "halves", np.r_[np.arange(wide).reshape(2, -1).T.reshape(-1), rest]
        if wide < n:
            yield "from the end", np.roll(np.arange(n), wide)
            parts = np.split(np.arange(n), [wide // 2, n // 2, (n + wide) // 2])
            yield "i with n / 2 + i", np.concatenate(parts[::2] + parts[1::2])


def _reordered(node: Node, order: Places) -> Any:
    return by(node)(lambda xp, v: xp.take(v, order, -1))


@rule("output_shifted", "index")  # y[i] -> y[i - 1], and 0 for the first
def shifted_outputs(program: Program) -> Iterator[Any]:
    for node in filter(None, dict.fromkeys(program.graph.outputs)):
        for axis in (k for k in range(-len(node.shape), 0) if node.shape[k] > 1):
            for how, step in (("previous", 1), ("next", -1)):
                moved = by(node)(partial(_with_zeros, axis, step))
                yield node, {node: moved}, {"how": how, "axis": axis}


def _with_zeros(axis: int, step: int, xp: Any, value: Any) -> Any:
    """Shifted along the axis, with 0 from outside."""
    inside = _moved("shifted", step, axis, np.ones(value.shape, np.bool_))
    rolled = xp.rearrange(lambda part: np.roll(part, step, axis), value)
    return xp.where(inside, rolled, xp.number(0))


@rule("part_unwritten", "index")  # [a, b] -> [a, 0]
def unwritten_parts(program: Program) -> Iterator[Any]:
    for node in program.of("move"):
        for k, part in enumerate(node.operands) if len(node.operands) > 1 else ():
            if part.op == "broadcast":  # an input, such as a bias, which is missing
                continue

            def without(xp: Any, *values: Any, node: Node = node, k: int = k) -> Any:
                zeroed = [v * 0 if place == k else v for place, v in enumerate(values)]
                return apply(node, xp, zeroed)

            yield node, {node: by(*node.operands)(without)}, {"part": part}


def _of_repeated(change: Callable[[Any, Any, Places], Any], program: Program) -> Iterator[Any]:
    for node in program.of("scatter_add"):
        index = program.graph.arrays[node.option[0]]
        weighted = by(*node.operands)(
            lambda xp, v, node=node, index=index: xp.scatter_add(
                change(xp, v, index), index, node.option[1]
            )
        )
        if np.unique(index).size < index.size:
            yield node, {node: weighted}, {"part": node.operands[0]}


def _one_of_each(end: int, xp: Any, a: Any, index: Places) -> Any:
    """The first, or with `end` -1 the last, row of each index, and 0 in place of the others."""
    rows = np.arange(index.size)[::end]
    kept = np.isin(rows[::end], rows[np.unique(index.reshape(-1)[::end], return_index=True)[1]])
    return xp.where(_over_rows(kept, a, index), a, xp.number(0))


def _over_times(xp: Any, a: Any, index: Places) -> Any:
    return a / xp.array(_over_rows(np.bincount(index.reshape(-1))[index], a, index))


def _over_rows(of_row: Places, a: Any, index: Places) -> Any:
    return of_row.reshape(*index.shape, *(1,) * (len(a.shape) - index.ndim))


# What is added up at an index that occurs several times.
rule("duplicates_overwritten", "index")(partial(_of_repeated, partial(_one_of_each, -1)))
rule("duplicates_ignored", "index")(partial(_of_repeated, partial(_one_of_each, 1)))
rule("duplicates_averaged", "index")(partial(_of_repeated, _over_times))
