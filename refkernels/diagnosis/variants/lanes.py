"""Sums of products without their tail, from blocks that do not divide the length.

A kernel works through n elements in blocks. Where the last block is not full, it must mask the
lanes beyond n, which hold zeros, or finish the rest separately. Out of many block sizes, the
variant takes the one whose answer comes nearest to a sample of the kernel's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.diagnosis import products
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.diagnosis.products import Product

_BLOCKS = tuple(2**k for k in range(1, 13))
SAMPLE = 16  # rows, and columns of a product
_LARGEST = 1 << 22  # products in a sample


def padded(n: int) -> list[int]:
    """The lengths to which n may be padded: the next power of two, multiples of blocks."""
    lengths = {1 << (n - 1).bit_length(), *(-(-n // block) * block for block in _BLOCKS)}
    return sorted(lengths - {n})


def kept(n: int) -> list[int]:
    """The possible numbers of elements without the tail, or without the last element."""
    return sorted({n - 1, *(n - n % block for block in _BLOCKS)} - {n, 0})


def distance(values: Doubles, answer: Doubles) -> float:
    """The sum of squared differences; infinite where it is not a number."""
    with np.errstate(all="ignore"):
        total = float(np.sum(np.square(values - answer)))
    return total if np.isfinite(total) else np.inf


def of_products(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Sums of products without the last terms."""
    for name, got in outputs.items():
        product = products.of(problem, name) if name in problem.op.sums else None
        if product is None or got.shape != product.shape or product.terms < 2:
            continue
        length = _nearest(product, got)
        if length is not None:
            details = {"n": product.terms, "dropped": product.terms - length}
            answer = only(_without_tail(problem, name, length), name)
            yield Variant("dropped_tail", details, answer, trials=len(kept(product.terms)))


def _nearest(product: Product, got: Array) -> int | None:
    """The number of terms that comes nearest to a sample of the output; None if that is all."""
    matrix = got.reshape(len(product.a), product.b.shape[1])
    side = min(SAMPLE, max(1, int(np.sqrt(_LARGEST / product.terms))))
    rows, columns = (
        np.unique(np.linspace(0, size - 1, min(size, side)).astype(int)) for size in matrix.shape
    )
    a, b = product.a[rows].astype(np.float64), product.b[:, columns].astype(np.float64)
    bias = 0.0 if product.bias is None else product.bias[columns].astype(np.float64)
    with np.errstate(all="ignore"):
        sample = matrix[np.ix_(rows, columns)].astype(np.float64)
        usable = np.isfinite(sample) & np.isfinite(a @ b)
        distances = {
            length: distance((a[:, :length] @ b[:length] + bias)[usable], sample[usable])
            for length in (*kept(product.terms), product.terms)
        }
    best = min(distances, key=lambda length: (distances[length], -length))
    return best if best < product.terms and distances[best] < distances[product.terms] else None


def _without_tail(problem: Problem, output: str, length: int) -> Answer:
    """The certified answer to the product of the first terms: inputs are cut along that axis."""
    axes = summed_axes(problem, output)
    cut = {name: _cut(problem.inputs[name], axis, length) for name, axis in axes.items()}
    return problem.ask(cut)


def summed_axes(problem: Problem, output: str) -> dict[str, int]:
    """The inputs with the index letter that an output's products are summed over, and the axis of
    that letter, counted from the end."""
    op, first = problem.op, problem.op.sums[problem.op.outputs[0]]
    product = op.sums[output]
    (summed,) = {letter for letters in product.terms.values() for letter in letters} - {
        *product.letters
    }
    letters = {**first.terms, op.cotangent: first.letters}
    return {
        name: axes.index(summed) - len(axes)
        for name, axes in letters.items()
        if name in problem.inputs and summed in axes
    }


def _cut(array: Array, axis: int, length: int) -> Array:
    """The first elements of all leading axes together (axis -2), or of the last axis."""
    if axis == -2:
        return array.reshape(-1, array.shape[-1])[:length]
    return np.ascontiguousarray(array[..., :length])


def only(answer: Answer, output: str) -> Answer:
    return Answer(
        {output: answer.reference[output]},
        {output: answer.bound[output]},
        {output: answer.plain[output]},
    )
