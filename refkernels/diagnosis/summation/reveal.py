"""The summation tree of a black box, from its answers alone.

All values are one unit, except +M at i and -M at j, with M so large that it absorbs every partial
sum. Everything that is added to +M or -M before the two meet is lost, so
    n - answer / unit = the number of leaves under the lowest node that holds i and j.
For one i and all j, these are the sizes of the ancestors of i. The leaves that join at an ancestor
form a subtree, which is found in the same way: n - 1 questions for a sum in sequence, about
n log2 n for a balanced one. Where a group of leaves forms several subtrees, several children join
at once: a fused addition.

Source: Xie et al. (2025), "FPRev: Revealing floating-point summation order", USENIX ATC,
arXiv:2411.00442. The order must not depend on the values; n - answer must be exact in the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.scalars import as_count, as_real
from refkernels.diagnosis.summation.tree import SummationTree

Box = Callable[[npt.NDArray[np.float64]], float]
ProductBox = Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], float]

_MOST = 2**24  # values; a question is an array of them


class RevealError(ValueError):
    """The box's answers are not those of one summation tree; the message quotes them."""


def reveal(
    box: Box,
    n: int,
    *,
    unit: float = 1.0,
    mask: float = 2.0**100,
    progress: Callable[[int], None] | None = None,
) -> SummationTree:
    """The tree in which `box` adds n values.

    box       returns the sum of n float64 values (units, +mask and -mask, exact in its format)
    unit      so small that n of them vanish beside mask, and that their sum is exact in the output
    progress  is called with the number of questions asked so far
    Raises RevealError where the answers are those of no tree (the order depends on the values, the
    sum is exact or compensated, or n units are not exact in the box's format), ValueError for
    n < 1 and unless 0 < n unit < mask < inf.
    """
    n = as_count(n, "n")
    if n > _MOST:
        raise ValueError(f"n is {n}, and at most {_MOST} values can be asked about.")
    unit, mask = as_real(unit, "unit"), as_real(mask, "mask")
    if not 0.0 < n * unit < mask < math.inf:
        raise ValueError(
            f"unit is {unit!r} and mask {mask!r}: {n} units must be positive and vanish beside a "
            "finite mask."
        )
    questions = _Questions(box, n, unit, mask, progress)
    if n == 1:
        return SummationTree.of(1, ())
    questions.check_plain()
    nodes: list[tuple[int, ...]] = []
    forest = _forest(questions, nodes, list(range(n)), n + 1)
    if len(forest) != 1:
        raise RevealError("The box's answers are not those of one sum over all its values.")
    return SummationTree.of(n, nodes)


class _Questions:
    """Asks the box, and accepts only answers that a sum can give."""

    def __init__(
        self, box: Box, n: int, unit: float, mask: float, progress: Callable[[int], None] | None
    ) -> None:
        self.box, self.n, self.unit, self.mask = box, n, unit, mask
        self.progress = progress
        self.asked = 0

    def check_plain(self) -> None:
        answer = float(self.box(np.full(self.n, self.unit)))
        if answer != self.n * self.unit:
            raise RevealError(
                f"The sum of {self.n} times {self.unit!r} is {answer!r} there: its format cannot "
                "hold the count, so ask for fewer values."
            )

    def size(self, i: int, j: int) -> int:
        """How many leaves the lowest node above i and j has."""
        values = np.full(self.n, self.unit)
        values[i], values[j] = self.mask, -self.mask
        answer = float(self.box(values)) / self.unit
        self.asked += 1
        if self.progress is not None:
            self.progress(self.asked)
        if not (math.isfinite(answer) and answer == int(answer) and 0 <= answer <= self.n - 2):
            raise RevealError(
                f"With a large value at {i} and its negative at {j} the box gives {answer:.6g} "
                f"units of {self.n}: no order of {self.n} ordinary additions does."
            )
        return self.n - int(answer)


def _forest(
    questions: _Questions, nodes: list[tuple[int, ...]], leaves: list[int], outer: int
) -> list[int]:
    """The subtrees that these leaves form below a node of `outer` leaves: one, unless that node
    joins several at once. A stack of tasks replaces recursion: a tree can be n leaves deep."""
    # A task has the leaves still to place, the size of the node above, and a list for its subtrees.
    result: list[int] = []
    stack: list[_PlacementTask] = [_PlacementTask(leaves, outer, result)]
    while stack:
        task = stack[-1]
        if task.pending is not None:  # the group's subtrees are complete: join them
            task.join(questions, nodes)
        if task.groups:
            size, group = task.groups.pop(0)
            task.pending = (size, [])
            stack.append(_PlacementTask(group, size, task.pending[1]))
            continue
        if task.current is not None:
            task.subtrees_found.append(task.current)
            task.current, task.covered = None, 0
        if not task.unplaced:
            stack.pop()
            continue
        task.begin(questions)
    return result


class _PlacementTask:
    def __init__(self, leaves: list[int], outer: int, subtrees_found: list[int]) -> None:
        self.unplaced = leaves
        self.outer = outer
        self.subtrees_found = subtrees_found
        self.current: int | None = None
        self.covered = 0
        self.groups: list[tuple[int, list[int]]] = []
        self.pending: tuple[int, list[int]] | None = None

    def begin(self, questions: _Questions) -> None:
        """Take the first leaf left, and sort the others by the size of their common node."""
        first, others = self.unplaced[0], self.unplaced[1:]
        by_size: dict[int, list[int]] = {}
        for j in others:
            by_size.setdefault(questions.size(first, j), []).append(j)
        if any(size > self.outer for size in by_size):
            raise RevealError(
                f"The box's answers around value {first} contradict one another: its order of "
                "summation depends on the values."
            )
        self.unplaced = by_size.pop(self.outer, [])  # they join the others at the node above
        self.groups = sorted(by_size.items())
        self.current, self.covered = first, 1

    def join(self, questions: _Questions, nodes: list[tuple[int, ...]]) -> None:
        """The node of that size: the subtree so far, and the group's subtrees."""
        assert self.pending is not None
        assert self.current is not None
        size, subtrees = self.pending
        self.pending = None
        self.covered = self.covered + _leaves_under(questions.n, nodes, subtrees)
        if self.covered != size:
            raise RevealError(
                f"A node of {size} values was found to hold {self.covered}: the order of summation "
                "depends on the values, or the sum is compensated."
            )
        nodes.append((self.current, *subtrees))
        self.current = questions.n + len(nodes) - 1


def _leaves_under(n: int, nodes: Sequence[Sequence[int]], roots: Sequence[int]) -> int:
    count, stack = 0, list(roots)
    while stack:
        node = stack.pop()
        if node < n:
            count += 1
        else:
            stack.extend(nodes[node - n])
    return count


def reveal_fused(tree: SummationTree, box: ProductBox, p: int) -> SummationTree:
    """The tree, with the products marked that enter their addition unrounded.

    box takes the factors a and b (n each) and gives the sum of a_i b_i. A leaf's factors are
    1 + 2^-h, whose square has a tail that a rounding to p bits takes away (h = ceil(p / 2)); one
    leaf on the other side of its addition holds minus the rounded square, all other products are
    zero. The sum is the tail exactly where the product was not rounded first.
    A product that opens a sum is never marked: nothing can show whether it was rounded.
    """
    h = -(-p // 2)
    factor = 1.0 + 2.0**-h
    rounded = 1.0 + 2.0 ** (1 - h)  # the tail 2^-2h is at most half an ulp; ties go to even
    fused = []
    for children in tree.nodes:
        for leaf in (child for child in children if child < tree.leaves):
            other = next(child for child in children if child != leaf)
            while other >= tree.leaves:
                other = tree.nodes[other - tree.leaves][0]
            a, b = np.zeros(tree.leaves), np.zeros(tree.leaves)
            a[leaf] = b[leaf] = factor
            a[other], b[other] = -rounded, 1.0
            if float(box(a, b)) != 0.0:
                fused.append(leaf)
                break
    return tree.with_fused(fused)
