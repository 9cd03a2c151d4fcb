"""A summation tree, as lines for the terminal and as a drawing.

A long sum in sequence takes one line: the reader wants to see the blocks and lanes. The tree is
given as plain nodes (the children of each, the root last), so that nothing depends on `diagnosis`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from refkernels.reporting.figures import drawing
from refkernels.reporting.figures.drawing import Drawn, finish

MOST_LINES = 60


def tree_lines(
    leaves: int,
    nodes: Sequence[Sequence[int]],
    fused: Sequence[int] = (),
    names: dict[int, str] | None = None,
    most: int = MOST_LINES,
) -> list[str]:
    """The tree as indented lines, at most `most` of them.

    `fused`: the leaves whose products are added unrounded; `names`: the names of some leaves
    ("bias"); the others show their numbers.
    """
    tree = _Tree(leaves, nodes, set(fused), names or {})
    lines = tree.lines(leaves + len(nodes) - 1)
    if len(lines) > most:
        left = len(lines) - most + 1
        lines = [*lines[: most - 1], f"… and {left} more lines"]
    return lines


class _Tree:
    def __init__(
        self, leaves: int, nodes: Sequence[Sequence[int]], fused: set[int], names: dict[int, str]
    ) -> None:
        self.leaves, self.nodes, self.fused, self.names = leaves, nodes, fused, names
        self.sizes = [1] * leaves
        self.first = list(range(leaves))
        for children in nodes:
            self.sizes.append(sum(self.sizes[child] for child in children))
            self.first.append(min(self.first[child] for child in children))

    def lines(self, root: int) -> list[str]:
        """The lines below `root`, depth first. The stack holds (a node, or single values that are
        added in sequence; the text before it; the text before its terms)."""
        written: list[str] = []
        stack: list[tuple[int | list[int], str, str]] = [(root, "", "")]
        while stack:
            part, before, indent = stack.pop()
            if isinstance(part, list):
                written.append(f"{before}then {self.run(part)}")
                continue
            terms = self.terms(part)
            if len(terms) == 2:  # addition commutes: the order of the values is easier to read
                terms.sort(key=self.first.__getitem__)
            if all(term < self.leaves for term in terms):
                together = ", all at once" if self.at_once(part) else ""
                written.append(before + self.run(terms) + together)
                continue
            order = "in sequence" if len(terms) > 2 else "the sum of two"
            order = f"{len(terms)} at once" if self.at_once(part) else order
            written.append(f"{before}{order}: {self.sizes[part]} values")
            parts = self.grouped(terms)
            for place in reversed(range(len(parts))):
                last = place == len(parts) - 1
                branch, more = ("└─ ", "   ") if last else ("├─ ", "│  ")
                stack.append((parts[place], indent + branch, indent + more))
        return written

    def at_once(self, node: int) -> bool:
        return node >= self.leaves and len(self.nodes[node - self.leaves]) > 2

    def terms(self, node: int) -> list[int]:
        """The terms whose sum in sequence is the node, first to last. Follows the larger child down
        as long as the smaller ones are single values, or sums of one size (the last term may be
        smaller)."""
        if node < self.leaves:
            return [node]
        if self.at_once(node):
            return list(self.nodes[node - self.leaves])
        joined: list[int] = []
        while node >= self.leaves and not self.at_once(node):
            first, second = self.nodes[node - self.leaves]
            heavy, light = (
                (first, second) if self.sizes[first] >= self.sizes[second] else (second, first)
            )
            if joined and not self._continues(
                self.sizes[light], [self.sizes[term] for term in joined]
            ):
                break
            joined.append(light)
            node = heavy
        return [node, *reversed(joined)]

    @staticmethod
    def _continues(size: int, joined: list[int]) -> bool:
        if size == 1 or joined[-1] == 1:
            return size == joined[-1]
        return size == joined[-1] or (len(joined) == 1 and size > joined[0])

    def run(self, terms: Sequence[int]) -> str:
        """Single values added in sequence, as one line."""
        names = [self.names.get(term, str(term)) for term in terms]
        products = [term for term in terms[1:] if term not in self.names]  # a bias is not one
        fused = " (FMA)" if products and self.fused.issuperset(products) else ""
        regular = len({after - before for before, after in itertools.pairwise(terms)}) == 1
        if len(terms) <= 4 or (len(terms) <= 16 and not regular):
            return " + ".join(names) + fused
        return f"{names[0]} + {names[1]} + … + {names[-1]}{fused}, {len(terms)} values in sequence"

    def grouped(self, terms: Sequence[int]) -> list[int | list[int]]:
        """The terms, with consecutive single values after the first term as one list."""
        parts: list[int | list[int]] = [terms[0]]
        for term in terms[1:]:
            if term >= self.leaves:
                parts.append(term)
            elif isinstance(parts[-1], list):
                parts[-1].append(term)
            else:
                parts.append([term])
        return parts


def draw_tree(
    leaves: int, nodes: Sequence[Sequence[int]], name: str, title: str, fused: Sequence[int] = ()
) -> Drawn:
    """The tree as a drawing: the values at the bottom, in order, each addition above its terms."""
    order = _from_left_to_right(leaves, nodes)
    places = [0.0] * leaves
    for place, leaf in enumerate(order):
        places[leaf] = float(place)
    heights = [0.0] * leaves
    segments: list[list[tuple[float, float]]] = []
    unrounded: list[list[tuple[float, float]]] = []
    entering = set(fused)
    for children in nodes:
        height = max(heights[child] for child in children) + 1.0
        middle = sum(places[child] for child in children) / len(children)
        for child in children:
            line = [(places[child], heights[child]), (places[child], height), (middle, height)]
            (unrounded if child in entering else segments).append(line)
        places.append(middle)
        heights.append(height)
    with mpl.rc_context(drawing.STYLE):
        width = min(12.0, max(3.2, 0.11 * leaves + 1.2))
        tall = min(5.0, max(1.8, 0.09 * heights[-1] + 1.3))
        figure = Figure(figsize=(width, tall))
        axes = figure.add_axes((0.75 / width, 0.5 / tall, 1 - 0.9 / width, 1 - 0.85 / tall))
        thin = 1.1 if leaves <= 128 else 0.5
        for lines, colour, label in (
            (segments, drawing.SERIES[0], "rounded, then added"),
            (unrounded, drawing.SERIES[1], "added unrounded (FMA)"),
        ):
            if lines:
                axes.add_collection(
                    LineCollection(lines, colors=colour, linewidths=thin, label=label)
                )
        axes.set_xlim(-0.5 - 0.01 * leaves, leaves - 0.5 + 0.01 * leaves)
        axes.set_ylim(0.0, heights[-1] * 1.04 + 0.2)
        shown = sorted({round(k * (leaves - 1) / 16) for k in range(17)})
        axes.set_xticks(shown, [str(order[place]) for place in shown])
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_xlabel("value, in the tree's order")
        axes.set_ylabel("additions")
        axes.set_title(title)
        if unrounded:
            figure.legend(frameon=False, fontsize=8.0, ncols=2, loc="upper right")
        caption = "Each addition stands above its terms; the height counts additions."
        return finish(figure, name, title, caption)


def _from_left_to_right(leaves: int, nodes: Sequence[Sequence[int]]) -> list[int]:
    """The leaves from left to right in a drawing without crossings."""
    ordered: list[int] = []
    stack = [leaves + len(nodes) - 1]
    while stack:
        node = stack.pop()
        if node < leaves:
            ordered.append(node)
        else:
            stack.extend(reversed(nodes[node - leaves]))
    return ordered
