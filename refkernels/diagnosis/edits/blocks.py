"""Blocks of an output that are computed otherwise: a tile in which a kernel forgets its bias.

Where the wrong elements of an output lie in one block of indices, as they would hardly by chance,
the edits are looked for that explain the block alone, or another block of its size that stands
there; which block it is costs its bits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.edits.search import explaining
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.variants.elsewhere import share_near
from refkernels.diagnosis.wrong import wrong_elements

_CHANCE = 16.0  # bits: elements at random places, but for zeros, lie in such a block as rarely
_MOST = 0.875  # of an output: an edit that explains more comes nearer to all of it


def in_one_block(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The edits that explain outputs that are wrong in one block."""
    for name, got in outputs.items():
        wrong = wrong_elements(problem, name, got)
        if not wrong.any() or not wrong.ndim:
            continue
        box = [(int(axis.min()), int(axis.max()) + 1) for axis in np.argwhere(wrong).T]
        block = np.zeros(got.shape, bool)
        block[tuple(slice(*ends) for ends in box)] = True
        share = block[wrong | (np.asarray(problem.truth.reference[name]) != 0.0)].mean()
        if share > _MOST or np.count_nonzero(wrong) * -math.log2(share) < _CHANCE:
            continue
        price = _price(block, box)
        edits = explaining(problem, {name: got}, {name: block}, price)
        for variant in itertools.chain(_of_another(problem, name, got, box, price), edits):
            ends = zip(got.shape, box, strict=True)
            told = ", ".join(f"{a}:{b}" if b - a < n else ":" for n, (a, b) in ends)
            yield replace(variant, details={**variant.details, "block": f"{name}[{told}]"})


def _of_another(
    problem: Problem, name: str, got: Array, box: list[tuple[int, int]], price: float
) -> Iterator[Variant]:
    """What belongs in another block along one axis, whose ends are multiples of its length away."""
    own, right = np.arange(got.size).reshape(got.shape), problem.truth.reference[name]
    block, ways = tuple(slice(*ends) for ends in box), list[tuple[float, str, int, Array]]()
    for axis, (first, last) in enumerate(box):
        size = last - first
        for start in range(first % size, got.shape[axis] - size + 1, size):
            there = (*block[:axis], slice(start, start + size), *block[axis + 1 :])
            share = share_near(to_float64(got[block]), np.asarray(right)[there])
            ways.append((share, f"i + {start - first}", axis, own[there]))
    share, how, axis, places = max(ways, key=lambda way: way[0])
    if share > 0.5:
        own[block] = places
        details = {"output": name, "how": how.replace("+ -", "- "), "axis": axis}
        yield Variant("output_moved", details, problem.truth.taken(name, own), len(ways), 0, price)


def _price(block: Array, box: list[tuple[int, int]]) -> float:
    """The bits that say which block it is: two ends of each axis that is not whole."""
    cut = (n for n, (first, last) in zip(block.shape, box, strict=True) if last - first < n)
    return sum(math.log2(n * (n + 1) / 2) for n in cut)
