"""What an edit is, and the rules that propose edits.

    @rule("term_missing", "term")                          a + b -> a, or b
    def missing(graph):
        for node in graph.of("add", "subtract"):
            yield node, {node: only(node.operands[0])}

A rule takes a program's graph and yields a place and what is computed otherwise there. It knows no
op. Its name is the identifier of the edit; with the place, `names` may find a better one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from refkernels.contexts.doubles import Doubles
from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.contexts.record import record
from refkernels.ops.formula import Formula

Derive = Callable[[Formula], Formula]  # the backward pass of a forward formula
XP = Doubles()  # in which programs are recorded, and edits read
CONDITIONS = frozenset(("truth", "less", "not less", "is", "not", "and", "or"))
_REDUCTIONS = ("mean", "sum", "norm", "max", "item", "pivot")
_TRANSPARENT = frozenset(("move", "broadcast", "store", "saved", "narrow"))
"""Primitives that change no number in exact arithmetic: patterns look through them."""


@dataclass(eq=False)
class Edit:
    """One edit of one program. `details`: its numbers and its formula, for the words. `number`: of
    the edits of one kind at one place with the same details, which one it is. `alike`: of how many
    places that look alike, as in the steps of a loop, it changes one."""

    kind: str
    family: str
    place: Node
    changes: Edits
    details: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    alike: int = 1

    def identity(self, program: Program) -> tuple[Any, ...]:
        """What makes it known in the same formula's graph at other shapes, but for its number."""
        places = program.places
        details = (
            (n, places.get(v) if isinstance(v, Node) else v) for n, v in self.details.items()
        )
        return self.kind, places[self.place], *(f"{name}={value!r}" for name, value in details)


class Proposal(NamedTuple):
    """What a rule yields."""

    place: Node
    changes: Edits
    details: Mapping[str, Any] = {}


Rule = Callable[["Program"], Iterator[Any]]
RULES: list[tuple[str, str, Rule]] = []


def rule(kind: str, family: str) -> Callable[[Rule], Rule]:
    """Enters a rule."""

    def entered(propose: Rule) -> Rule:
        RULES.append((kind, family, propose))
        return propose

    return entered


@dataclass(frozen=True)
class Program:
    """A graph, as rules ask it."""

    graph: Graph

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes that are numbers, in the order of the formula."""
        return [node for node in self.graph.nodes if node.op not in CONDITIONS]

    @cached_property
    def places(self) -> dict[Node, int]:
        """Where each node stands in the graph."""
        return {node: k for k, node in enumerate(self.graph.nodes)}

    @cached_property
    def inputs(self) -> list[Node]:
        """The arrays that the formula is given; params have no axes."""
        return [node for node in self.nodes if node.op == "input" and node.shape]

    @cached_property
    def masks(self) -> list[Node]:
        """Arrays of truth values."""
        return [node for node in self.graph.nodes if node.op == "truth"]

    @cached_property
    def users(self) -> dict[Node, list[Node]]:
        """The nodes that read a node."""
        users: dict[Node, list[Node]] = {}
        for node in self.graph.nodes:
            for operand in dict.fromkeys(node.operands):
                users.setdefault(operand, []).append(node)
        return users

    @cached_property
    def statistics(self) -> list[Node]:
        """The numbers of a row that its elements read."""
        size = {node: math.prod(node.shape) for node in self.nodes}
        most = {n: max((size.get(u, 0) for u in self.users.get(n, ())), default=0) for n in size}
        return [node for node in self.of_rows if most[node] > size[node]]

    @cached_property
    def of_rows(self) -> list[Node]:
        """The numbers of a row."""

        @functools.cache
        def of_a_row(node: Node) -> bool:
            size = math.prod(node.shape)
            alike = (part for part in node.operands if math.prod(part.shape) == size)
            return node.op in _REDUCTIONS or any(map(of_a_row, alike))

        return [n for n in self.nodes if n.op not in ("welford", "pivot") and of_a_row(n)]

    def readers(self, node: Node, *also: str) -> Iterator[Node]:
        """What reads a node behind movements and storage, and these primitives."""
        for user in self.users.get(node, ()):
            if user.op in _TRANSPARENT or user.op in also:
                yield from self.readers(user, *also)
            else:
                yield user

    def of(self, *ops: str) -> Iterator[Node]:
        """The nodes of these primitives."""
        return (node for node in self.nodes if node.op in ops)

    def functions(self, *names: str) -> Iterator[Node]:
        """The nodes of these functions; of all functions, if none is named."""
        return (node for node in self.of("function") if not names or node.option in names)


def program_of(formula: Formula, arguments: Mapping[str, Any], derive: Derive | None) -> Program:
    """The program of a formula, or of the forward formula inside its backward pass. `arguments`:
    values of `XP`."""
    programs: list[Program] = []

    def read(xp: Any, /, **given: Any) -> Any:
        programs.append(Program(record(formula, given)))
        return () if derive is None else programs[0].graph.read(xp, given)

    with np.errstate(all="ignore"):
        (read if derive is None else derive(read))(XP, **arguments)
    return programs[0]


def affected(users: Mapping[Node, list[Node]], changes: Collection[Node]) -> set[Node]:
    """The nodes that depend on what is changed, and itself."""
    waiting, seen = list(changes), set(changes)
    for node in waiting:
        new = [user for user in users.get(node, ()) if user not in seen]
        waiting += new
        seen.update(new)
    return seen


def through(node: Node) -> Node:
    """The node behind movements and storage."""
    while node.op in _TRANSPARENT and len(node.operands) == 1:
        (node,) = node.operands
    return node


def is_number(node: Node) -> bool:
    """Whether a node is one number for all elements: a literal or a param."""
    return node.op in ("number", "pi", "known") or (node.op == "input" and not node.shape)


def by(*operands: Node) -> Callable[[Callable[..., Any]], Replacement]:
    """Replacement(operands, f), f last."""
    return lambda compute: Replacement(operands, compute)


def only(node: Node, shape: tuple[int, ...]) -> Replacement:
    """Another node in a node's place, repeated to its shape."""
    return Replacement((node,), lambda xp, value: shaped(xp, value, shape))


def shaped(xp: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """The value repeated to the shape."""
    return value if value.shape == shape else xp.broadcast(value, shape)


class KeyOf:
    """What is known of an edit, or of a family of edits, in every program that has its numbers:
    what is computed of which, in the place of which. Two forms of one pass mostly go on from the
    same numbers alike. `value_of`: the numbers of a program's node."""

    def __init__(self, value_of: Callable[[Node], Any]) -> None:
        self._value_of = value_of
        self._digests: dict[Node, Hashable] = {}

    def __call__(self, edit: Any) -> Hashable:
        details = (
            (name, self.of_node(value) if isinstance(value, Node) else str(value))
            for name, value in sorted(edit.details.items())
        )
        changes = edit.changes if isinstance(edit, Edit) else {}
        read = ((self.of_node(n), *map(self.of_node, c.operands)) for n, c in changes.items())
        return edit.kind, self.of_node(edit.place), *details, *read

    def of_node(self, node: Node) -> Hashable:
        """A node's numbers, to the precision that rounding in float64 leaves them."""
        if node not in self._digests:
            try:
                value = np.asarray(self._value_of(node))
            except (KeyError, TypeError):  # an edit's own node, or two numbers
                own = hash((node.op, str(node.option), *map(self.of_node, node.operands)))
                return self._digests.setdefault(node, own)
            weights = np.cos(np.arange(1.0, value.size + 1.0))
            with np.errstate(all="ignore"):
                self._digests[node] = value.shape, f"{np.sum(value.reshape(-1) * weights):.9g}"
        return self._digests[node]
