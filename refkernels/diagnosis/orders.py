"""The orders in which kernels add products and a bias, replayed and compared bit by bit.

Every order replays a sample of elements first. The orders that add the bias last come first:
another place for the bias is a cause only where its bits differ from theirs.

A bias is leaf K of the tree, a product with 1. It is added last, as in most kernels; to the first
block's sum, as in a BLAS whose C holds the bias (beta = 1); or first, as the accumulator's start.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from refkernels.arithmetic import formats
from refkernels.diagnosis import evidence, products
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import ORDER, Claim, Outcome, Prediction
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.products import Product
from refkernels.diagnosis.summation import SummationTree, known, replay
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
_SIDE = 8  # rows and columns of the sample
_NAMED = 8  # reported orders that reproduce all bits
MOST_TERMS = 2**12  # beyond, only the few common orders are built: trees take memory


@dataclass(frozen=True)
class Order:
    """One order: `bias` is where the bias enters, "" if there is none; `bare`: the tree of the
    products, of which the first block has `first`."""

    products: str
    bare: SummationTree
    first: int
    bias: Place

    @property
    def name(self) -> str:
        return self.products + _BIAS[self.bias]

    @functools.cached_property
    def tree(self) -> SummationTree:
        """The tree, with the bias as its last leaf."""
        bare = self.bare
        if not self.bias:
            return bare
        if self.bias == "start":
            tree = _inserted(bare, 0)
            fused = [0, *(leaf for leaf in tree.fused if leaf >= 0)]
            return tree.with_fused(fused) if "FMA" in self.products else tree
        return _inserted(bare, _chain_end(bare, self.first) if self.bias == "first" else bare.root)


@functools.lru_cache(maxsize=4)
def candidates(terms: int, bias: bool) -> list[Order]:
    """Every order to try for sums of that many terms, the likeliest first.

    Orders that add the bias last come before all others, so that another place for the bias is
    found only where its bits differ.
    """
    places: tuple[Place, ...] = ("last", "first", "start") if bias else ("",)
    found = []
    for place, (name, tree, first) in itertools.product(places, _products(terms)):
        # One accumulator can start at a bias; with one block, what is added first is added last.
        chained = name.startswith("blocks") or name.removesuffix(", FMA") == "in sequence"
        if place in ("", "last") or (chained and (place == "start" or first < terms)):
            found.append(Order(name, tree, first, place))
    return found


def _products(terms: int) -> list[tuple[str, SummationTree, int]]:
    """Orders of products: their names, trees, and the terms of the first block."""
    too_long = terms > MOST_TERMS
    blocks = [size for size in _BLOCKS[: 2 if too_long else None] if size < terms]
    partitions = {(*block_sizes(terms, n),): f"blocks of {n} in sequence" for n in blocks}
    for size, unroll in itertools.product(() if too_long else blocks, _UNROLL):
        multiples = f" to multiples of {unroll}" if unroll > 1 else ""
        name = f"blocks of {size} in sequence, the last two halved{multiples}"
        partitions.setdefault((*block_sizes(terms, size, unroll),), name)
    ways: list[tuple[str, Callable[..., SummationTree], int]]
    ways = [("in sequence", partial(known.sequential, terms), terms)]
    ways += [(name, partial(known.blocks, terms, n), n[0]) for n, name in partitions.items()]
    for lanes in (lanes for lanes in _LANES[: 2 if too_long else None] if lanes < terms):
        for how, told in list(known.COMBINATIONS.items())[: 1 if lanes == 2 else None]:
            added = partial(known.lanes, terms, lanes, combine=how)
            ways.append((f"{lanes} lanes, combined {told}", added, terms))
    fused = {", FMA": True, "": False}.items()
    return [
        *((name + also, tree(fma=fma), first) for name, tree, first in ways for also, fma in fused),
        ("pairwise", known.pairwise(terms), terms),
        ("NumPy's pairwise sum", known.numpy_pairwise(terms), terms),
        ("in sequence from the last to the first", known.sequential(terms, backwards=True), terms),
    ]


def block_sizes(terms: int, size: int, unroll: int = 0) -> list[int]:
    """Blocks of one size, the last one shorter. With an unroll, K is cut as in OpenBLAS: a
    remainder of more than one block and less than two is halved, and the first half rounded up to a
    multiple of the unroll. With 1 it is cut as in MKL: the first half is larger by one where the
    remainder is odd."""
    sizes = []
    while terms:
        step = min(size, terms)
        if unroll and size < terms < 2 * size:
            half = terms // 2 if unroll > 1 else -(-terms // 2)
            step = min(-(-half // unroll) * unroll, terms)
        sizes.append(step)
        terms -= step
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


class SampledSum(NamedTuple):
    """The product of an output, the kernel's answer, and those of the sample."""

    product: Product
    got: Array  # (M, N)
    rows: Array
    columns: Array
    sample: Product
    sampled: Array


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """The orders of summation that have a kernel's bits; where none has, the nearest."""
    for name, got in outputs.items():
        product = products.of(problem, name)
        if product is not None and np.isfinite(got).any():
            yield from _ordered(product, got, name)


def _exact(claim: Claim, got: Array) -> bool:
    bits = claim.prediction.bits
    return bits is not None and bool(evidence.same(got, bits).all())


def sampled(product: Product, got: Array) -> SampledSum:
    """The sum and its sample: rows and columns spread over the whole, first and last included."""
    m, n = len(product.a), product.b.shape[1]
    rows, columns = (
        np.unique(np.linspace(0, size - 1, min(size, side)).astype(int))
        for size, side in ((m, _SIDE if n > 1 else 64), (n, _SIDE if m > 1 else 64))
    )
    a, b = product.a[rows], np.ascontiguousarray(product.b[:, columns])
    sample = Product(a, b, product.bias if product.bias is None else product.bias[columns])
    whole = got.reshape(m, n)
    return SampledSum(product, whole, rows, columns, sample, whole[np.ix_(rows, columns)])


def _ordered(product: Product, got: Array, output: str) -> list[Claim]:
    """The orders that have all bits; where none has, the order nearest on the sample, ruled out."""
    bias = product.bias is not None and bool(np.any(product.bias))
    sampled_sum = sampled(product, got)
    misses: dict[bytes, tuple[float, Order]] = {}
    claims: list[Claim] = []
    tried = 0
    for order in candidates(product.terms, bias):
        tried += 1
        model = run(order, sampled_sum.sample, got)
        share = float(evidence.same(sampled_sum.sampled, model).mean())
        if share < 1.0:
            misses.setdefault(model.tobytes(), (share, order))
        elif len(claims) < _NAMED:
            claims += _replayed(product, order, got, output)
    claims = [claim for claim in claims if _exact(claim, got)] or claims[:1]
    shares = [share for share, _ in misses.values()]
    alike = [evidence.agreement(shares, count) for count in (1, got.size)]
    if not claims and misses:
        share, order = max(misses.values(), key=lambda pair: pair[0])
        outcome = Outcome(False, round(share * sampled_sum.sampled.size), sampled_sum.sampled.size)
        claims = [Claim(ORDER, output, Prediction(outcome=outcome), {"sampled": True}, order.name)]
    claims = [claim.beside(alike[claim.prediction.against is None]) for claim in claims]
    return [replace(claim, trials=0 if k else tried) for k, claim in enumerate(claims)]


def _replayed(product: Product, order: Order, got: Array, output: str) -> list[Claim]:
    """One order on all elements. Where it adds the bias earlier than last, and the bits show it,
    there is a second claim, of that cause."""
    model = run(order, product, got).reshape(got.shape)
    details = {"order": order.products, "bias": order.bias}
    claims = [Claim(ORDER, output, Prediction(bits=model), details, order.name)]
    if order.bias in ("first", "start") and _exact(claims[0], got):
        last = run(replace(order, bias="last"), product, got).reshape(got.shape)
        if evidence.apart(model, last):
            early = Prediction(bits=model, against=last)
            claims.append(Claim("bias_first", output, early, details, order.name))
    return claims


def run(order: Order, product: Product, got: Array) -> Array:
    """The product in that order, (M, N), in the format of the kernel's answer. Formats narrower
    than float32 are summed in float32 and rounded at the end."""
    format = formats.of(got)
    kind = np.float64 if format.name == "float64" else np.float32
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = product.a.astype(kind), product.b.astype(kind)
        if order.bias:
            assert product.bias is not None
            a = np.hstack([a, np.ones((len(a), 1), kind)])
            b = np.vstack([b, product.bias.astype(kind)])
        return replay(order.tree, a, b).astype(format.storage)
