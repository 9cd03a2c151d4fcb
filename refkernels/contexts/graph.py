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
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.contexts.ball import Ball
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


class Library(NamedTuple):
    """A call of `Context.library`: `beside` has None in the places of the values that follow the
    `inputs` among the operands."""

    formula: Callable[..., Value]
    limit: int
    inputs: int
    beside: tuple[Any, ...]

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

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


def _needed(node: Node, edits: Edits) -> Sequence[Node]:
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
    known: Mapping[Node, Any] | None = None,
) -> list[Any]:
    """The nodes in another context; `known` nodes have their values already."""
    values: dict[Node, Any] = dict(known or {})
    edits = edits or {}

    def computed(node: Node) -> Any:
        match node.op:
            case "array":
                return xp.array(arrays[node.option])
            case "input":
                assert inputs is not None
                return inputs[node.option]
            case "truth":
                return np.asarray(arrays[node.option], bool)
            case "pick":
                return xp.take_along_axis(values[node.operands[0]], arrays[node.option])
            case "broadcast":
                return _broadcast(xp, values[node.operands[0]], node.shape)
            case "scatter_add":
                index, length = node.option
                return xp.scatter_add(values[node.operands[0]], arrays[index], length)
            case "either" if edits and len({values[o].shape[1:] for o in node.operands}) > 1:
                return values[node.operands[0]]  # an edit gave one way another shape
            case _:
                return apply(node, xp, [values[operand] for operand in node.operands])

    for node in in_order(nodes, lambda node: _needed(node, edits), known or ()):
        edit = edits.get(node)
        if edit is None or node in edit.operands:
            values[node] = computed(node)
        if edit is not None:
            values[node] = edit.rule(xp, *(values[operand] for operand in edit.operands))
    return [values[node] for node in nodes]


def apply(node: Node, xp: Context, operands: Sequence[Any]) -> Any:
    """A node's primitive on other operands; a node that needs one of the arrays has none."""
    match node.op:
        case "number":
            return xp.number(node.option)
        case "known":
            assert isinstance(xp, Ball)
            return xp.value(*node.option)
        case "function" | "logaddexp" | "narrow" | "newton_schulz" | "power" | "step":
            given = (node.option, *operands) if node.op == "function" else (*operands, node.option)
            return getattr(xp, node.op)(*given)
        case "divide" if node.option:
            return xp.quotient(*operands)
        case "less":
            return xp.less(*operands).yes
        case "not less":
            return xp.less(*operands).no
        case "where":
            return xp.where(Mask(*operands[:2]), *operands[2:])
        case "is":
            return operands[0]
        case "not":
            return ~operands[0]
        case "and":
            return operands[0] & operands[1]
        case "or":
            return operands[0] | operands[1]
        case "item":
            return operands[0][node.option]
        case "library":
            return node.option(xp, *operands)
        case "move":
            return xp.rearrange(node.option.change, *operands)
        case "unknown":
            raise Untraceable(f"{node.option} is not kept in a graph.")
        case primitive if node.option is not None:
            return getattr(xp, primitive)(*operands, axis=node.option)
        case primitive:
            return getattr(xp, primitive)(*operands)


def _broadcast(xp: Context, value: Value, shape: Shape) -> Value:
    """To a shape of more axes, or of fewer where those in front are of length 1."""
    axes, have = len(shape), value.shape
    fitting = have[len(have) - axes :] if len(have) > axes else (1,) * (axes - len(have)) + have
    return xp.broadcast(xp.reshape(value, fitting), shape)
