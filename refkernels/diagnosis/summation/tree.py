"""The order in which n values are added: a tree whose leaves are the values.

Leaves are 0 .. n-1. Every inner node adds its children with one rounding: two of them for an
ordinary addition, more where hardware adds several products at once. Nodes are numbered from n on,
children before parents, the root last, in one canonical order, so that trees are equal exactly
where they describe the same sums (addition is commutative, not associative).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from refkernels.arguments import as_list
from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.scalars import as_count


@dataclass(frozen=True)
class SummationTree:
    """`nodes[k]` holds the children of node `leaves + k`. `fused[k]` is the leaf whose product
    enters that addition unrounded (an FMA), -1 if there is none."""

    leaves: int
    nodes: tuple[tuple[int, ...], ...]
    fused: tuple[int, ...]

    @staticmethod
    def of(leaves: int, nodes: Sequence[Sequence[int]], fused: Iterable[int] = ()) -> SummationTree:
        """The canonical tree of some nodes, the root last; `fused` lists leaves.

        Raises ValueError where the nodes are not one tree over all leaves, TypeError for anything
        but a list of numbers.
        """
        leaves = as_count(leaves, "leaves")
        checked = [_numbers(children) for children in as_list(nodes, "nodes")]
        _check(leaves, checked)
        return canonical(leaves, checked, _numbers(fused))

    @property
    def root(self) -> int:
        return self.leaves + len(self.nodes) - 1

    @property
    def widest(self) -> int:
        """The most children of a node: 2 unless additions are fused."""
        return max((len(children) for children in self.nodes), default=1)

    def sizes(self) -> list[int]:
        """The number of leaves under each node, leaves (1 each) first."""
        sizes = [1] * self.leaves
        for children in self.nodes:
            sizes.append(sum(sizes[child] for child in children))
        return sizes

    def depths(self) -> list[int]:
        """The number of additions that each leaf goes through."""
        depths = [0] * (self.leaves + len(self.nodes))
        for k in reversed(range(len(self.nodes))):
            for child in self.nodes[k]:
                depths[child] = depths[self.leaves + k] + 1
        return depths[: self.leaves]

    @property
    def depth(self) -> int:
        """The most additions that a leaf goes through: n - 1 in sequence, about log2 n pairwise."""
        return max(self.depths())

    def roundings(self) -> int:
        """The most roundings that a product goes through: its own, unless fused, and its
        additions. The factor of the error bound."""
        fused = set(self.fused)
        return max(depth + (leaf not in fused) for leaf, depth in enumerate(self.depths()))

    def bound(self, format: Format | str) -> float:
        """gamma_k = k u / (1 - k u), k = `roundings()`: |error| <= gamma_k sum |a_i b_i|, barring
        underflow; infinite from k u = 1 on. Source: Higham (2002), "Accuracy and Stability of
        Numerical Algorithms", chapter 4."""
        ku = self.roundings() * formats.get(format).u
        return ku / (1.0 - ku) if ku < 1.0 else math.inf

    def with_fused(self, leaves: Iterable[int]) -> SummationTree:
        """The same order where these leaves' products enter their additions unrounded."""
        return SummationTree(self.leaves, self.nodes, _marks(self.nodes, _numbers(leaves)))


def canonical(
    leaves: int, nodes: Sequence[tuple[int, ...]], fused: Iterable[int] = ()
) -> SummationTree:
    """`SummationTree.of` for nodes that are one tree by construction: nothing is checked."""
    smallest = list(range(leaves))
    for children in nodes:
        smallest.append(min([smallest[child] for child in children]))
    ordered: list[tuple[int, ...]] = []
    renumbered = list(range(leaves + len(nodes)))
    for node in _post_order(leaves, nodes, smallest):
        renumbered[node] = leaves + len(ordered)
        inner = sorted(nodes[node - leaves], key=smallest.__getitem__)
        ordered.append(tuple([renumbered[child] for child in inner]))
    return SummationTree(leaves, tuple(ordered), _marks(ordered, fused))


def _marks(nodes: Iterable[tuple[int, ...]], fused: Iterable[int]) -> tuple[int, ...]:
    """The leaf of each node whose product enters it unrounded, -1 if there is none."""
    entering = set(fused)
    return tuple(
        [next((child for child in children if child in entering), -1) for children in nodes]
    )


def _numbers(children: Any) -> tuple[int, ...]:
    """Numbers of leaves and nodes."""
    try:
        return tuple(map(operator.index, as_list(children, "children")))
    except TypeError as failure:
        raise TypeError("A summation tree is made of lists of its nodes' numbers.") from failure


def _check(leaves: int, nodes: Sequence[Sequence[int]]) -> None:
    seen: set[int] = set()
    for k, children in enumerate(nodes):
        if len(children) < 2 or any(not 0 <= child < leaves + k for child in children):
            raise ValueError(f"Node {leaves + k} has children {list(children)}: not a tree.")
        if seen.intersection(children) or len(set(children)) < len(children):
            raise ValueError(f"Node {leaves + k} takes a child that is taken already.")
        seen.update(children)
    if len(seen) != leaves + len(nodes) - 1:
        raise ValueError("The nodes do not join all leaves into one tree.")


def _post_order(leaves: int, nodes: Sequence[Sequence[int]], smallest: list[int]) -> list[int]:
    """Inner nodes, children before parents, subtrees in the order of their smallest leaves."""
    if not nodes:
        return []
    ordered: list[int] = []
    stack = [leaves + len(nodes) - 1]
    while stack:  # parents first and the last subtree first, to be read backwards
        node = stack.pop()
        ordered.append(node)
        inner = [child for child in nodes[node - leaves] if child >= leaves]
        stack.extend(sorted(inner, key=smallest.__getitem__))
    return ordered[::-1]
