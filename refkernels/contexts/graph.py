"""Graph: a program as nodes, which `record` makes of a formula, and which any context reads.

    graph = record(formula, arguments)         arguments: values, by name
    graph.read(xp, arguments)                  what formula(xp, **arguments) gives
    graph.read(xp, arguments, edits)           ... with some nodes computed otherwise

A node is a primitive with its operands, an option (a function's name, an axis) and a shape. Equal
nodes are one node. Elements that are moved (a reshape, a transposition, a gather) are one
primitive, `move`, whose option says where each element comes from, however the formula spells it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.contexts.context import Context
from refkernels.contexts.value import Mask, Value

Shape = tuple[int, ...]
Array = npt.NDArray[Any]


class Untraceable(ValueError):
    """The formula has no graph of the kind that is needed; NumPy's contexts read it."""


@dataclass(frozen=True, eq=False)
class Node:
    """A primitive. `option`: what it needs besides its operands."""

    op: str
    operands: tuple[Node, ...]
    option: Any
    shape: Shape

    def __repr__(self) -> str:
        option = "" if self.option is None else f"[{self.option}]"
        return f"{self.op}{option}({', '.join(operand.op for operand in self.operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class Move:
    """change(*arrays) moves elements. `sources`: where each element of the result stands in the
    flat operands, one after the other; None for large arrays."""

    change: Callable[..., Any]
    sources: npt.NDArray[np.intp] | None


@dataclass(frozen=True, eq=False)
class Library:
    """A call of `Context.library`: `beside` has None in the places of the values that follow the
    `inputs` among the operands."""

    formula: Callable[..., Value]
    limit: int
    inputs: int
    beside: tuple[Any, ...]

    def __call__(self, xp: Context, *values: Value) -> Value:
        others = iter(values[self.inputs :])
        beside = (next(others) if item is None else item for item in self.beside)
        return xp.library(self.formula, self.limit, values[: self.inputs], *beside)


class Replacement(NamedTuple):
    """What takes a node's place: rule(xp, *operands). Among the operands the node itself stands for
    the value that it would have."""

    operands: tuple[Node, ...]
    rule: Callable[..., Any]


Edits = Mapping[Node, Replacement]


@dataclass(frozen=True)
class Graph:
    """A formula's outputs, None for those that it does not give; all nodes that it recorded, and
    the arrays that these number."""

    outputs: tuple[Node | None, ...]
    recorded: Sequence[Node]
    arrays: Sequence[Array]

    @property
    def nodes(self) -> list[Node]:
        """The nodes that the outputs need, in the order in which the formula computes them."""
        needed = set(in_order(node for node in self.outputs if node))
        return [node for node in self.recorded if node in needed]

    def read(self, xp: Context, arguments: Mapping[str, Any], edits: Edits | None = None) -> Any:
        """The outputs, as the formula gives them, in another context. `arguments` are those that it
        was recorded with, as values of xp."""
        inputs = dict(values_of(arguments))
        wanted = [node for node in self.outputs if node]
        values = dict(zip(wanted, read(wanted, xp, self.arrays, inputs, edits or {}), strict=True))
        return tuple(None if node is None else values[node] for node in self.outputs)


def values_of(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """The values among arguments, each with a name."""
    for name, item in arguments.items():
        if isinstance(item, Value):
            yield name, item
        elif isinstance(item, list | tuple):
            yield from values_of({f"{name}[{k}]": part for k, part in enumerate(item)})


def in_order(
    outputs: Iterable[Any],
    operands: Callable[[Any], Sequence[Any]] = attrgetter("operands"),
    known: Container[Any] = (),
) -> list[Any]:
    """Every node that the outputs need, operands first, but those that are `known`; without
    recursion, since a tape is deep."""
    done: dict[int, Any] = {}
    waiting = [(output, False) for output in reversed(list(outputs))]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            done[id(node)] = node
        elif id(node) not in done and node not in known:
            waiting.append((node, True))
            waiting += [(part, False) for part in reversed(operands(node)) if part not in known]
    return list(done.values())


def needed(node: Node, edits: Edits) -> Sequence[Node]:
    """The nodes that are read before a node."""
    if node not in edits:
        return node.operands
    operands = edits[node].operands
    own = node.operands if node in operands else ()
    return [*(operand for operand in operands if operand is not node), *own]


def read(
    nodes: Sequence[Node],
    xp: Context,
    arrays: Sequence[Array],
    inputs: Mapping[str, Value] | None = None,
    edits: Edits | None = None,
) -> list[Any]:
    """The nodes in another context."""
    order = in_order(nodes, lambda node: needed(node, edits or {}))
    values = Reader(xp, arrays, inputs).read(order, {}, edits or {})
    return [values[node] for node in nodes]


class Reader:
    """Reads nodes in another context, as often as asked; how each is computed is found once."""

    def __init__(self, xp: Any, arrays: Sequence[Array] = (), inputs: Any = None) -> None:
        self.xp, self.arrays, self.inputs = xp, arrays, inputs
        self._computing: dict[Node, Callable[..., Any]] = {}

    def read(self, nodes: Iterable[Node], known: Any, edits: Edits) -> dict[Node, Any]:
        """The values of nodes, each behind its operands, beside those that are known."""
        values: dict[Node, Any] = dict(known)
        for node in nodes:
            edit = edits.get(node)
            if edit is None or node in edit.operands:
                operands = [values[operand] for operand in node.operands]
                if edits and node.op == "either" and len({o.shape[1:] for o in operands}) > 1:
                    values[node] = operands[0]  # an edit gave one way another shape
                else:
                    values[node] = self.computing(node)(*operands)
            if edit is not None:
                values[node] = edit.rule(self.xp, *[values[operand] for operand in edit.operands])
        return values

    def computing(self, node: Node) -> Callable[..., Any]:
        """What computes a node from its operands."""
        if node.op == "unknown":
            raise Untraceable(f"{node.option} is not kept in a graph.")
        if node not in self._computing:
            own, option = _OWN.get(node.op), {} if node.option is None else {"axis": node.option}
            call = partial(own, self, node) if own else partial(getattr(self.xp, node.op), **option)
            self._computing[node] = call
        return self._computing[node]


def apply(node: Node, xp: Context, operands: Sequence[Any]) -> Any:
    """A node's primitive on other operands; a node that needs one of the arrays has none."""
    return Reader(xp).computing(node)(*operands)


_OWN: dict[str, Callable[..., Any]] = {
    **{
        name: lambda r, n, *operands, name=name: getattr(r.xp, name)(*operands, n.option)
        for name in ("logaddexp", "narrow", "newton_schulz", "power", "step")
    },
    "array": lambda r, n: r.xp.array(r.arrays[n.option]),
    "input": lambda r, n: r.inputs[n.option],
    "truth": lambda r, n: np.asarray(r.arrays[n.option], bool),
    "pick": lambda r, n, a: r.xp.take_along_axis(a, r.arrays[n.option]),
    "broadcast": lambda r, n, a: _broadcast(r.xp, a, n.shape),
    "scatter_add": lambda r, n, a: r.xp.scatter_add(a, r.arrays[n.option[0]], n.option[1]),
    "number": lambda r, n: r.xp.number(n.option),
    "known": lambda r, n: r.xp.value(*n.option),
    "function": lambda r, n, a: r.xp.function(n.option, a),
    "divide": lambda r, n, a, b: (r.xp.quotient if n.option else r.xp.divide)(a, b),
    "less": lambda r, n, a, b: r.xp.less(a, b).yes,
    "not less": lambda r, n, a, b: r.xp.less(a, b).no,
    "where": lambda r, n, yes, no, a, b: r.xp.where(Mask(yes, no), a, b),
    "is": lambda r, n, condition: condition,
    "not": lambda r, n, condition: ~condition,
    "and": lambda r, n, a, b: a & b,
    "or": lambda r, n, a, b: a | b,
    "item": lambda r, n, pair: tuple.__getitem__(pair, n.option),  # refuses an edit's array
    "library": lambda r, n, *operands: n.option(r.xp, *operands),
    "move": lambda r, n, *operands: r.xp.rearrange(n.option.change, *operands),
}
"""How a reader computes a node that is no primitive of its name, with an axis or without."""


def _broadcast(xp: Context, value: Value, shape: Shape) -> Value:
    """To a shape of more axes, or of fewer where those in front are of length 1."""
    axes, have = len(shape), value.shape
    fitting = have[len(have) - axes :] if len(have) > axes else (1,) * (axes - len(have)) + have
    return xp.broadcast(xp.reshape(value, fitting), shape)
