"""Layouts: an axis in another order throughout, outputs at shifted indices, parts of an output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from refkernels.contexts.graph import Node, apply
from refkernels.diagnosis.edits.catalogue import Program, by, rule

Places = Any


@rule("other_layout", "index")  # y = f(x) -> P y = f(P x): pairs for halves, a reversed axis
def other_layouts(program: Program) -> Iterator[Any]:
    outputs = [node for node in dict.fromkeys(program.graph.outputs) if node and node.shape]
    wide = [node for node in program.inputs if node.shape[-1] > 1]
    for n in dict.fromkeys(node.shape[-1] for node in outputs):
        inside = [node for node in wide if node.shape[-1] == n]
        halves = {2 * node.shape[-1] for node in wide} | {n}
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


def _reordered(node: Node, order: Places) -> Any:
    return by(node)(lambda xp, v: xp.take(v, order, -1))


@rule("output_shifted", "index")  # y[i] -> y[i - 1], and 0 for the first
def shifted_outputs(program: Program) -> Iterator[Any]:
    for node in filter(None, dict.fromkeys(program.graph.outputs)):
        for axis in (k for k in range(-len(node.shape), 0) if node.shape[k] > 1):
            for how, step in (("previous", 1), ("next", -1)):
                moved = by(node)(
                    lambda xp, v, axis=axis, step=step: xp.where(
                        _outside(v.shape, axis, step), xp.number(0), _rolled(xp, v, axis, step)
                    )
                )
                yield node, {node: moved}, {"how": how, "axis": axis}


def _rolled(xp: Any, value: Any, axis: int, step: int) -> Any:
    return xp.rearrange(lambda part: np.roll(part, step, axis), value)


def _outside(shape: tuple[int, ...], axis: int, step: int) -> Any:
    """The elements along the axis that a shift fills in."""
    filled = np.zeros(shape, np.bool_)
    edge = [slice(None)] * len(shape)
    edge[axis] = slice(0, step) if step > 0 else slice(step, None)
    filled[tuple(edge)] = True
    return filled


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
