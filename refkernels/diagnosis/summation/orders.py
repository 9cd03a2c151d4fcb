"""The order of an op's sums in one framework: revealed, named, and checked on random data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.diagnosis.summation import known
from refkernels.diagnosis.summation.boxes import OpBox
from refkernels.diagnosis.summation.replay import replay
from refkernels.diagnosis.summation.reveal import reveal, reveal_fused
from refkernels.diagnosis.summation.tree import SummationTree

Bits = npt.NDArray[Any]
_SEED = 20260521


@dataclass(frozen=True)
class RevealedOrder:
    """`name`: the field's name for the order, None where it has none. `questions`: how often the
    framework was asked. `equal` of `outputs`: how many outputs for random data of that shape the
    tree reproduces bit for bit, replayed in `accumulator`'s precision; outputs is 0 where a replay
    is impossible (16-bit formats, several values added at once)."""

    tree: SummationTree
    name: str | None
    questions: int
    equal: int
    outputs: int
    accumulator: str

    @property
    def proven(self) -> bool:
        """Whether the tree reproduces every output for random data: all have this order."""
        return self.outputs > 0 and self.equal == self.outputs


def reveal_order(box: OpBox, progress: Callable[[int], None] | None = None) -> RevealedOrder:
    """The tree of one output element, and whether all elements have it.

    Raises RevealError where the op is not a sum in a fixed order (see `reveal`).
    """
    total_asked = 0

    def count(questions: int) -> None:
        nonlocal total_asked
        total_asked = questions
        if progress is not None:
            progress(questions)

    tree = reveal(box.total, box.leaves, unit=box.unit, mask=box.mask, progress=count)
    if box.product is not None and box.dtype in ("float32", "float64"):
        tree = reveal_fused(tree, box.products, formats.get(box.dtype).p)
    return RevealedOrder(tree, name_of(tree, box.bias), total_asked, *reproduced(box, tree))


def name_of(tree: SummationTree, bias: bool = False) -> str | None:
    """`known.name_of`; for products with a bias (the last leaf), the name of the products' order
    and the place of the bias: last, with the first block, or at the start."""
    if not bias:
        return known.name_of(tree)
    leaf = tree.leaves - 1
    bare = _without(tree, leaf)
    name = known.name_of(bare)
    depth = tree.depths()[leaf]
    if name is None:
        return None
    if depth == 1:
        return f"{name}, the bias added last"
    blocks = known.block_sizes(bare)
    if depth == len(blocks):
        return f"{name}, the bias added to the first block"
    chained = blocks[0] + len(blocks) - 1 if name.startswith("blocks") else tree.leaves - 1
    return f"{name}, starting at the bias" if depth == chained else None


def reproduced(box: OpBox, tree: SummationTree) -> tuple[int, int, str]:
    """(equal, outputs, accumulator): how many outputs for random normal data the tree reproduces
    bit for bit. Sums without products are replayed in float64 too, and the better one counts."""
    if box.dtype not in ("float32", "float64") or tree.widest > 2:
        return 0, 0, box.dtype
    rng = np.random.default_rng(_SEED)
    kind = np.dtype(box.dtype)
    a = rng.standard_normal((box.rows, box.k)).astype(kind)
    b = rng.standard_normal((box.k, box.n)).astype(kind)
    bias = rng.standard_normal(box.n).astype(kind)
    outputs = box.run(box.named(a, b, bias))
    if box.product is None:
        got = outputs[box.mean] if box.mean else next(iter(outputs.values()))
        return _sums(box, tree, a, got.reshape(-1).astype(kind))
    got = next(iter(outputs.values())).reshape(box.m, box.n)
    if box.bias:
        a, b = np.hstack([a, np.ones((box.m, 1), kind)]), np.vstack([b, bias])
    return _equal(got, replay(tree, a, b)), got.size, box.dtype


def _sums(box: OpBox, tree: SummationTree, a: Bits, got: Bits) -> tuple[int, int, str]:
    """`reproduced` for sums. A mean is the sum divided by K, or times 1 / K: both are tried."""
    best = (-1, got.size, box.dtype)
    for accumulator in dict.fromkeys((box.dtype, "float64")):
        precision = np.dtype(accumulator)
        total = replay(tree, a.astype(precision))
        k = precision.type(box.k)
        answers = [total / k, total * (precision.type(1) / k)] if box.mean else [total]
        equal = max(_equal(got, answer.astype(got.dtype)) for answer in answers)
        if equal > best[0]:
            best = (equal, got.size, accumulator)
    return best


def _equal(got: Bits, model: Bits) -> int:
    bits = formats.of(got).bits_dtype
    same = np.ascontiguousarray(got).view(bits) == np.ascontiguousarray(model).view(bits)
    return int(np.count_nonzero(same))


def _without(tree: SummationTree, leaf: int) -> SummationTree:
    """The tree without a leaf, which must be the last one."""
    n = tree.leaves - 1
    renumbered = {child: child for child in range(n)}
    nodes: list[tuple[int, ...]] = []
    for k, children in enumerate(tree.nodes):
        kept = [renumbered[child] for child in children if child != leaf]
        if len(kept) > 1:
            nodes.append(tuple(kept))
            renumbered[tree.leaves + k] = n + len(nodes) - 1
        else:
            renumbered[tree.leaves + k] = kept[0]
    return SummationTree.of(n, nodes, [fused for fused in tree.fused if 0 <= fused < n])
