"""The orders in which kernels add products and a bias, for replay and comparison bit by bit.

A bias is leaf K of the tree, a product with 1. It is added last, as in most kernels; to the first
block's sum, as in a BLAS whose C holds the bias (beta = 1); or first, as the accumulator's start.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from refkernels.diagnosis.summation import SummationTree, known
from refkernels.diagnosis.summation.tree import canonical

Place = Literal["", "last", "first", "start"]
_BLOCKS = (384, 256, 320, 192, 128, 512, 64, 32, 16, 1024)  # of K, as BLAS libraries cut it
_UNROLL = (1, 2, 4, 8, 16, 32)  # where BLAS libraries halve a block, at a multiple of the unroll
_LANES = (8, 16, 4, 32, 2, 64)
_BIAS = {
    "": "",
    "last": ", the bias added last",
    "first": ", the bias added to the first block",
    "start": ", starting at the bias",
}
MOST_TERMS = 2**12  # beyond, only the few common orders are built: trees take memory


@dataclass(frozen=True)
class Order:
    """One order: `bias` is where the bias enters, "" if there is none."""

    products: str  # the name of the order without the bias
    tree: SummationTree
    bias: Place

    @property
    def name(self) -> str:
        return self.products + _BIAS[self.bias]

    @property
    def bias_last(self) -> Order:
        """The same products, the bias added last."""
        order = _order(self.products, self.tree.leaves - 1, "last")
        assert order is not None
        return order


def candidates(terms: int, bias: bool) -> Iterator[Order]:
    """Every order to try for sums of that many terms, the likeliest first.

    Orders that add the bias last come before all others, so that another place for the bias is
    found only where its bits differ.
    """
    places: tuple[Place, ...] = ("last", "first", "start") if bias else ("",)
    for place in places:
        for name in _names(terms):
            # One accumulator can start at a bias.
            chained = name.startswith("blocks") or name in ("in sequence", "in sequence, FMA")
            if place in ("first", "start") and not chained:
                continue
            order = _order(name, terms, place)
            if order is not None:
                yield order


@functools.lru_cache(maxsize=1024)
def _order(name: str, terms: int, place: Place) -> Order | None:
    bare = name.removesuffix(", FMA")
    tree, first = _tree(bare, terms, fma="FMA" in name)
    if place == "last":
        tree = _inserted(tree, tree.root)
    elif place == "first":
        if first >= terms:  # one block: the bias is then added last
            return None
        tree = _inserted(tree, _chain_end(tree, first))
    elif place == "start":
        tree = _inserted(tree, 0)
        if "FMA" in name:
            tree = tree.with_fused([0, *(leaf for leaf in tree.fused if leaf >= 0)])
    return Order(name, tree, place)


def _names(terms: int) -> Iterator[str]:
    """Orders of products by name; `_tree` needs nothing else."""
    too_long = terms > MOST_TERMS
    blocks = [size for size in _BLOCKS[: 2 if too_long else None] if size < terms]
    names = ["in sequence", *(f"blocks of {size} in sequence" for size in blocks)]
    partitions = {tuple(block_sizes(terms, size)) for size in blocks}
    for size, unroll in itertools.product(() if too_long else blocks, _UNROLL):
        sizes = tuple(block_sizes(terms, size, unroll))
        if sizes not in partitions:
            partitions.add(sizes)
            multiples = f" to multiples of {unroll}" if unroll > 1 else ""
            names.append(f"blocks of {size} in sequence, the last two halved{multiples}")
    for name in names:
        yield f"{name}, FMA"
        yield name
    for lanes in _LANES[: 2 if too_long else None]:
        combinations = list(known.COMBINATIONS.values())
        for combination in combinations[: 1 if lanes == 2 else None] if lanes < terms else ():
            yield f"{lanes} lanes, combined {combination}, FMA"
            yield f"{lanes} lanes, combined {combination}"
    yield "pairwise"
    yield "NumPy's pairwise sum"
    yield "in sequence from the last to the first"


def _tree(name: str, terms: int, fma: bool) -> tuple[SummationTree, int]:
    """The tree of a name, and the number of terms in its first block."""
    if name == "pairwise":
        return known.pairwise(terms), terms
    if name.startswith("NumPy"):
        return known.numpy_pairwise(terms), terms
    if name.endswith("to the first"):
        return known.sequential(terms, backwards=True), terms
    words = name.split()
    if words[0] == "blocks":
        halved = int("halved" in words) * (int(words[-1]) if words[-1].isdigit() else 1)
        sizes = block_sizes(terms, int(words[2]), halved)
        return known.blocks(terms, sizes, fma=fma), sizes[0]
    if words[1] == "lanes,":
        combine = {phrase: key for key, phrase in known.COMBINATIONS.items()}[
            name.partition("combined ")[2]
        ]
        return known.lanes(terms, int(words[0]), combine=combine, fma=fma), terms
    return known.sequential(terms, fma=fma), terms


def block_sizes(terms: int, size: int, unroll: int = 0) -> list[int]:
    """Blocks of one size, the last one shorter. With an unroll, K is cut as in OpenBLAS: a
    remainder of more than one block and less than two is halved, and the first half rounded up to a
    multiple of the unroll. With 1 it is cut as in MKL: the first half is larger by one where the
    remainder is odd."""
    sizes = []
    remaining = terms
    while remaining:
        step = min(size, remaining)
        if unroll and size < remaining < 2 * size:
            half = remaining // 2 if unroll > 1 else -(-remaining // 2)
            step = min(-(-half // unroll) * unroll, remaining)
        sizes.append(step)
        remaining -= step
    return sizes


def _inserted(tree: SummationTree, target: int) -> SummationTree:
    """The tree with one more leaf, the last, added to the value of node `target`."""
    n = tree.leaves
    renumbered = list(range(n))
    nodes: list[tuple[int, ...]] = []

    def add(*children: int) -> int:
        nodes.append(children)
        return n + len(nodes)

    if target < n:
        renumbered[target] = add(target, n)
    for k, children in enumerate(tree.nodes):
        renumbered.append(add(*(renumbered[child] for child in children)))
        if n + k == target:
            renumbered[-1] = add(renumbered[-1], n)
    return canonical(n + 1, nodes, [leaf for leaf in tree.fused if leaf >= 0])


def _chain_end(tree: SummationTree, count: int) -> int:
    """The node that holds the sum of the first `count` leaves."""
    if count == 1:
        return 0
    sizes = tree.sizes()
    node = 0
    for k, children in enumerate(tree.nodes):
        if node in children:
            node = tree.leaves + k
            if sizes[node] >= count:
                return node
    return tree.root
