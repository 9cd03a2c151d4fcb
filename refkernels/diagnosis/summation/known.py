"""Orders that have names: in sequence, pairwise, NumPy's pairwise, in blocks, in lanes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from refkernels.diagnosis.summation.tree import SummationTree, canonical

NUMPY_BLOCK = 128  # above it NumPy's pairwise sum splits
_LANES = 8
COMBINATIONS = {
    "sequence": "one after the other",
    "halves": "neighbours first",
    "fold": "upper half onto lower half",
}


class _Builder:
    """Collects nodes; `chain` and `halves` return the node that holds their sum."""

    def __init__(self, leaves: int) -> None:
        self.leaves = leaves
        self.nodes: list[tuple[int, ...]] = []

    def add(self, *children: int) -> int:
        self.nodes.append(children)
        return self.leaves + len(self.nodes) - 1

    def chain(self, terms: Sequence[int]) -> int:
        """((t0 + t1) + t2) + ..."""
        total = terms[0]
        for term in terms[1:]:
            total = self.add(total, term)
        return total

    def halves(self, terms: Sequence[int]) -> int:
        """(first half) + (second half), the first the larger by at most one."""
        if len(terms) == 1:
            return terms[0]
        middle = (len(terms) + 1) // 2
        return self.add(self.halves(terms[:middle]), self.halves(terms[middle:]))

    def tree(self, fused: Iterable[int] = ()) -> SummationTree:
        return canonical(self.leaves, self.nodes, fused)


def sequential(n: int, *, fma: bool = False, backwards: bool = False) -> SummationTree:
    """((v0 + v1) + v2) + ..., or backwards; with fma every product but v0 is added unrounded."""
    builder = _Builder(n)
    builder.chain(range(n)[:: -1 if backwards else 1])
    return builder.tree(range(1, n) if fma else ())


def pairwise(n: int) -> SummationTree:
    """Halves of halves down to single values."""
    builder = _Builder(n)
    builder.halves(range(n))
    return builder.tree()


def blocks(n: int, sizes: int | Sequence[int], *, fma: bool = False) -> SummationTree:
    """Each block in sequence, and the blocks' sums in sequence; with fma every product but a
    block's first is added unrounded. `sizes`: one for all blocks (the last may be shorter), or
    each block's."""
    builder = _Builder(n)
    if isinstance(sizes, int):
        sizes = [min(sizes, n - start) for start in range(0, n, sizes)]
    ends = list(itertools.accumulate(sizes))
    parts = [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    builder.chain([builder.chain(part) for part in parts])
    return builder.tree([i for part in parts for i in part[1:]] if fma else ())


def lanes(n: int, width: int, *, combine: str = "halves", fma: bool = False) -> SummationTree:
    """Lane l adds v[l], v[l + width], ... in sequence; then the lanes are combined: "sequence",
    "halves" (neighbours first) or "fold" (upper half onto lower half, as a vector is reduced)."""
    builder = _Builder(n)
    sums = [builder.chain(range(lane, n, width)) for lane in range(min(width, n))]
    if combine == "sequence":
        builder.chain(sums)
    elif combine == "halves":
        builder.halves(sums)
    else:
        while len(sums) > 1:
            half = (len(sums) + 1) // 2
            upper = sums[half:]
            sums = [
                builder.add(low, upper[i]) if i < len(upper) else low
                for i, low in enumerate(sums[:half])
            ]
    return builder.tree(range(width, n) if fma else ())


def numpy_pairwise(n: int) -> SummationTree:
    """np.sum of a contiguous array: in sequence below 8 values; up to 128, eight accumulators
    combined as ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7)), then the rest in sequence; more
    values are split into halves, the first a multiple of 8."""
    builder = _Builder(n)

    def part(terms: Sequence[int]) -> int:
        if len(terms) < _LANES:
            return builder.chain(terms)
        if len(terms) <= NUMPY_BLOCK:
            whole = len(terms) - len(terms) % _LANES
            sums = [builder.chain(terms[lane:whole:_LANES]) for lane in range(_LANES)]
            return builder.chain([builder.halves(sums), *terms[whole:]])
        half = len(terms) // 2
        half -= half % _LANES
        return builder.add(part(terms[:half]), part(terms[half:]))

    part(range(n))
    return builder.tree()


def name_of(tree: SummationTree) -> str | None:
    """The field's name for this order, None where it has none here. A suffix says whether products
    enter unrounded: "in sequence, FMA"."""
    n = tree.leaves
    bare = tree.with_fused(())
    for name, candidate in _candidates(tree):
        if candidate == bare:
            fused = sum(leaf >= 0 for leaf in tree.fused)
            additions = sum(any(child < n for child in node) for node in tree.nodes)
            if fused == 0:
                return name
            return f"{name}, FMA" if fused == additions else f"{name}, FMA in {fused} additions"
    return None


def _candidates(tree: SummationTree) -> Iterator[tuple[str, SummationTree]]:
    n = tree.leaves
    yield "in sequence", sequential(n)
    yield "in sequence from the last to the first", sequential(n, backwards=True)
    yield "pairwise", pairwise(n)
    yield "NumPy's pairwise sum", numpy_pairwise(n)
    sizes = block_sizes(tree)
    if sum(sizes) == n and len(sizes) > 1:
        even = set(sizes[:-1]) == {sizes[0]} and sizes[-1] <= sizes[0]
        sizes_shown = str(sizes[0]) if even else ", ".join(map(str, sizes))
        yield f"blocks of {sizes_shown} in sequence", blocks(n, sizes)
    for width in (2**k for k in range(1, 9) if 2**k < n):
        for combine, description in COMBINATIONS.items():
            yield f"{width} lanes, combined {description}", lanes(n, width, combine=combine)


def block_sizes(tree: SummationTree) -> list[int]:
    """The sizes of the blocks, if the tree were blocks in sequence: the growth of the sums above
    leaf 0, with the single steps of the first block taken together."""
    sizes = tree.sizes()
    sums, node = [1], 0
    for k, children in enumerate(tree.nodes):
        if node in children:
            node = tree.leaves + k
            sums.append(sizes[node])
    steps = [b - a for a, b in itertools.pairwise(sums)]
    first = 1 + sum(1 for _ in itertools.takewhile(lambda step: step == 1, steps))
    return [first, *steps[first - 1 :]]
