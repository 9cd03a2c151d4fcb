"""Which elements of a formula's output are independent: those that share no intermediate result.

A rounding error, or a fault, in a number that several elements are computed from shows in all of
them, and says no more for it. So elements are one unit where numbers that the formula computes
connect them; inputs connect nothing, nor does the second factor of a product, which all rows of the
first one share, such as the keys and values of attention. The graph's edges between elements are
followed; a primitive that mixes its operands in a way unknown here connects all of their elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.graph import Graph, Node, in_order

Places = npt.NDArray[np.intp]
MOST = 2**21  # elements of intermediate results that are followed
_FIXED = {"number", "known", "pi"}
_GIVEN = {"array", "input", "truth"}
_MOVING = {"move", "broadcast", "pick"}
_MIXING = {"scatter_add", "library", "newton_schulz", "unknown"}
_COUNTED = {"item", "power"}  # whose option is a number that is no axis


def components(graph: Graph, output: Node) -> Places | None:
    """A number at each element of an output: elements with the same are connected. None for a
    graph that is too large."""
    fixed: set[Node] = set()  # numbers and params, and what is computed from these alone
    given: set[Node] = set()  # these, and inputs, however their elements are moved
    for node in in_order([output]):
        param = node.op == "input" and not node.shape
        if param or node.op in _FIXED or (node.operands and fixed.issuperset(node.operands)):
            fixed.add(node)
        if (
            node in fixed
            or node.op in _GIVEN
            or (node.op in _MOVING and given.issuperset(node.operands))
        ):
            given.add(node)
    nodes = [node for node in in_order([output]) if node not in given]
    sizes = [int(np.prod(node.shape, dtype=np.int64)) for node in nodes]
    if sum(sizes) > MOST:
        return None
    starts = np.concatenate([[0], np.cumsum(sizes)])
    own = {
        node: (starts[k] + np.arange(sizes[k])).reshape(node.shape) for k, node in enumerate(nodes)
    }
    pairs = [pair for node in nodes for pair in _edges(node, graph.arrays, own)]
    none = (np.zeros(0, np.intp),) * 2
    joined = [np.concatenate([pair[k].reshape(-1) for pair in [none, *pairs]]) for k in (0, 1)]
    labels = _connected(int(starts[-1]), *joined)
    return labels[own[output]] if output in own else None


def _edges(
    node: Node, arrays: Sequence[Any], own: dict[Node, Places]
) -> Iterator[tuple[Places, Places]]:
    """Pairs of elements that a primitive connects."""
    here = own[node]
    if not here.size:
        return
    if node.op == "move" and node.option.sources is not None:
        # Elements of operands that are given have the number -1.
        given = [own.get(operand, np.full(operand.shape, -1)) for operand in node.operands]
        taken = np.concatenate([part.reshape(-1) for part in given])[node.option.sources]
        yield here[taken >= 0], taken[taken >= 0]
        return
    for operand in (operand for operand in node.operands if operand in own and own[operand].size):
        there = own[operand]
        axis = None if node.op in _COUNTED or isinstance(node.option, bool) else node.option
        if node.op == "pick":
            there = np.take_along_axis(there, arrays[node.option], axis=-1)
        elif node.op == "matmul":
            a, b = node.operands
            if operand is b and a in own:
                continue
            axis = -1 if operand is a else -2  # a row of a, a column of b
            first = np.take(there, [0], axis=axis)
            yield there, np.broadcast_to(first, there.shape)
            yield here, np.broadcast_to(first, here.shape)
            continue
        elif node.op in (*_MIXING, "move"):
            yield there, np.broadcast_to(there.reshape(-1)[:1], there.shape)
            yield here, np.broadcast_to(there.reshape(-1)[:1], here.shape)
            continue
        elif isinstance(axis, int):
            first = np.take(there, [0], axis=axis)
            yield there, np.broadcast_to(first, there.shape)
        elif node.op == "broadcast":
            fitting = there.shape[max(0, there.ndim - here.ndim) :]
            there = there.reshape((1,) * (here.ndim - len(fitting)) + fitting)
        shape = np.broadcast_shapes(here.shape, there.shape)
        yield np.broadcast_to(here, shape), np.broadcast_to(there, shape)


def _connected(size: int, a: Places, b: Places) -> Places:
    """The least number that each of `size` numbers is connected with, by pairs a, b."""
    labels = np.arange(size)
    while True:
        least = np.minimum(labels[a], labels[b])
        before = labels.copy()
        np.minimum.at(labels, labels[a], least)
        np.minimum.at(labels, labels[b], least)
        labels = labels[labels]
        if np.array_equal(labels, before):
            return labels


def units(labels: Places, exact: npt.NDArray[np.float64]) -> tuple[Places, Places]:
    """(places, owner): elements in the order of their components, of components with the same
    values up to ±2^j one, and the number of each one's component: 0, 1, ..."""
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    alike = {np.abs(np.frexp(exact[group])[0]).tobytes(): group for group in reversed(groups)}
    kept = [*reversed(alike.values())]
    return np.concatenate(kept), np.repeat(np.arange(len(kept)), [group.size for group in kept])
