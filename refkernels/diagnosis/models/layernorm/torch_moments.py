"""PyTorch's mean and variance of a row on a CPU: Welford in vector lanes, merged as a cascade.

A vector has L lanes (8 of float32, 4 of float64); 16-bit formats are read 2 L at a time, and a
chunk's two halves are merged one after the other into the same L lanes.
    chunk     16 vectors; in each lane, with the tabulated reciprocal of j + 1,
              d = x - m,  m += d / (j + 1),  s += d (x - m)
    cascade   a finished chunk is merged into level 0; like a binary counter, a full level is merged
              into the next; at the end, all levels into level 0
    tail      the elements after the last whole vector: Welford with a true division
    result    the L lanes are merged into the tail, in order
Merging (n', m', s') into (n, m, s) (Chan): d = m' - m, c = n' / (n + n'), in the lanes
    m += c d,  s = fma(c d, n d, s + s')          and at the end   m = fma(c, d, m),
                                                                  s += fma(d d c, n, s')
`fused` says whether products and sums that follow each other are one FMA, as in the build for
AVX2; `fused_tail` whether the tail's are (only in the compiled code of float16).

Source: aten/src/ATen/native/cpu/moments_utils.h; Welford (1962),
doi:10.1080/00401706.1962.10490022; Chan, Golub, LeVeque (1983), doi:10.1080/00031305.1983.10483115.
Which operations are fused is the compiler's choice, found by comparing bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.arithmetic.fma import fma
from refkernels.arithmetic.jit import inner, njit
from refkernels.diagnosis.models.layernorm.model import Array

CHUNK = 16
_LEVELS = 64  # of the cascade: enough for 16 * 2^63 vectors
_FRESH = _LEVELS  # the place of a chunk's own statistics until they are merged


@njit(inline="always")
def multiply_add(a: Any, b: Any, c: Any, fused: bool) -> Any:
    """a b + c, with one rounding or two."""
    return fma(a, b, c) if fused else a * b + c


@inner
def _merge(counts: Any, mean: Any, squares: Any, into: int, source: int, fused: bool) -> None:
    """Merge the lanes of one level into another's, and empty it."""
    kind = mean.dtype.type
    count = counts[into]
    total = count + counts[source]
    share = kind(0) if total == 0 else kind(counts[source]) / kind(total)
    for lane in range(mean.shape[1]):
        delta = mean[source, lane] - mean[into, lane]
        step = share * delta
        squares_sum = squares[into, lane] + squares[source, lane]
        mean[into, lane] += step
        squares[into, lane] = multiply_add(step, kind(count) * delta, squares_sum, fused)
        mean[source, lane] = kind(0)
        squares[source, lane] = kind(0)
    counts[into] = total
    counts[source] = 0


@inner
def _chunk(
    row: Any, at: int, stride: int, vectors: int, mean: Any, squares: Any, fused: bool
) -> None:
    """Welford over the vectors at row[at], row[at + stride], ..., into the empty fresh lanes."""
    kind = mean.dtype.type
    for j in range(vectors):
        share = kind(1) / kind(j + 1)
        first = at + j * stride
        for i in range(mean.shape[1]):
            value = row[first + i]
            delta = value - mean[_FRESH, i]
            updated = multiply_add(delta, share, mean[_FRESH, i], fused)
            mean[_FRESH, i] = updated
            squares[_FRESH, i] = multiply_add(delta, value - updated, squares[_FRESH, i], fused)


@inner
def _cascade(row: Any, halves: int, counts: Any, mean: Any, squares: Any, fused: bool) -> int:
    """All whole vectors of a row into level 0; the number of elements that they hold."""
    lanes = mean.shape[1]
    vectors = row.size // (lanes * halves)
    chunks = (vectors + CHUNK - 1) // CHUNK
    depth = 1
    while (1 << depth) < chunks:
        depth += 1
    for i in range(chunks):
        size = min(CHUNK, vectors - i * CHUNK)
        for half in range(halves):
            at = (i * CHUNK * halves + half) * lanes
            _chunk(row, at, lanes * halves, size, mean, squares, fused)
            counts[_FRESH] = size
            _merge(counts, mean, squares, 0, _FRESH, fused)
        level, carry = 1, i + 1
        while level < depth and carry & 1 == 0:
            _merge(counts, mean, squares, level, level - 1, fused)
            level, carry = level + 1, carry >> 1
    for level in range(1, depth):
        _merge(counts, mean, squares, 0, level, fused)
    return vectors * lanes * halves


@inner
def _finish(
    row: Any, whole: int, lane_mean: Any, lane_squares: Any, fused: bool, fused_tail: bool
) -> Any:
    """The tail after the first `whole` elements, and the lanes merged into it."""
    kind = row.dtype.type
    count, mean, squares = 0, kind(0), kind(0)
    for i in range(whole, row.size):
        count += 1
        delta = row[i] - mean
        mean += delta / kind(count)
        squares = multiply_add(delta, row[i] - mean, squares, fused_tail)
    lane_count = whole // lane_mean.size
    for i in range(lane_mean.size):
        total = count + lane_count
        share = kind(0) if total == 0 else kind(lane_count) / kind(total)
        delta = lane_mean[i] - mean
        mean = multiply_add(share, delta, mean, fused)
        squares += multiply_add(delta * delta * share, kind(count), lane_squares[i], fused)
        count = total
    return mean, squares / kind(row.size)


@njit
def _moments(
    x: Any, lanes: int, halves: int, fused: bool, fused_tail: bool, mean: Any, var: Any
) -> None:
    counts = np.zeros(_LEVELS + 1, np.int64)
    means = np.zeros((_LEVELS + 1, lanes), x.dtype)
    squares = np.zeros((_LEVELS + 1, lanes), x.dtype)
    for i in range(x.shape[0]):
        counts[0] = 0
        for lane in range(lanes):  # the other levels are left empty
            means[0, lane] = 0
            squares[0, lane] = 0
        whole = _cascade(x[i], halves, counts, means, squares, fused)
        mean[i], var[i] = _finish(x[i], whole, means[0], squares[0], fused, fused_tail)


def moments(
    x: Array, *, lanes: int, halves: int = 1, fused: bool = True, fused_tail: bool = False
) -> tuple[Array, Array]:
    """(mean, biased variance) of each row of x (rows, n), float32 or float64.

    lanes       of a vector of x's dtype
    halves      2 for values that were 16-bit numbers, else 1
    """
    mean, var = np.empty((2, x.shape[0]), x.dtype)
    _moments(x, lanes, halves, fused, fused_tail, mean, var)
    return mean, var
