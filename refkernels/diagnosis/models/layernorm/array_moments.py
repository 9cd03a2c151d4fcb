"""The twins of `torch_moments`' and `torch_cpu`'s forward kernels: all rows and lanes at once.

The chunks of a row are independent: they go through Welford's steps together, and are merged one
after the other. `arithmetic.small` decides when a twin runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.arithmetic import fused as fma
from refkernels.diagnosis.models.layernorm.model import Array

CHUNK = 16


def multiply_add(a: Array, b: Array, c: Array, fused: bool) -> Array:
    """a b + c, with one rounding or two."""
    return fma.multiply_add(a, b, c) if fused else a * b + c


class _Level:
    """The lanes of one level of the cascade, (rows, lanes)."""

    def __init__(self, count: int, mean: Array, squares: Array) -> None:
        self.count, self.mean, self.squares = count, mean, squares

    @classmethod
    def empty(cls, rows: int, lanes: int, dtype: np.dtype[Any]) -> _Level:
        return cls(0, *np.zeros((2, rows, lanes), dtype))

    def take(self, source: _Level, fused: bool) -> None:
        """Merge another level into this one, and empty it."""
        kind = self.mean.dtype.type
        total = self.count + source.count
        share = kind(0) if total == 0 else kind(source.count) / kind(total)
        delta = source.mean - self.mean
        step, squares = share * delta, self.squares + source.squares
        self.mean = self.mean + step
        self.squares = multiply_add(step, kind(self.count) * delta, squares, fused)
        self.count = total
        source.count = 0
        source.mean, source.squares = np.zeros((2, *delta.shape), delta.dtype)


def moments(
    x: Array, lanes: int, halves: int, fused: bool, fused_tail: bool, mean: Array, var: Array
) -> None:
    """`torch_moments._moments`: into mean and var, of the rows of x."""
    with np.errstate(all="ignore"):
        vectors = x.shape[1] // (lanes * halves)
        whole = vectors * lanes * halves
        lane_values = x[:, :whole].reshape(len(x), vectors, halves, lanes)
        level = _cascade(*_chunks(lane_values, fused), vectors, fused)
        mean[:], squares = _finish(x[:, whole:], level, fused, fused_tail)
        var[:] = squares / x.dtype.type(x.shape[1])


def _chunks(lane_values: Array, fused: bool) -> tuple[Array, Array]:
    """Mean and sum of squares of each chunk's lanes, (rows, chunks, halves, lanes)."""
    rows, vectors, halves, lanes = lane_values.shape
    kind = lane_values.dtype.type
    mean, squares = np.zeros((2, rows, -(-vectors // CHUNK), halves, lanes), lane_values.dtype)
    for j in range(min(CHUNK, vectors)):
        value = lane_values[:, j::CHUNK]
        active = slice(0, value.shape[1])  # the last chunk may have fewer vectors
        delta = value - mean[:, active]
        updated = multiply_add(delta, kind(1) / kind(j + 1), mean[:, active], fused)
        squares[:, active] = multiply_add(delta, value - updated, squares[:, active], fused)
        mean[:, active] = updated
    return mean, squares


def _cascade(mean: Array, squares: Array, vectors: int, fused: bool) -> _Level:
    """All chunks merged in `torch_moments._cascade`'s order."""
    rows, chunks, halves, lanes = mean.shape
    depth = max(1, (chunks - 1).bit_length())
    levels = [_Level.empty(rows, lanes, mean.dtype) for _ in range(depth)]
    for i in range(chunks):
        size = min(CHUNK, vectors - i * CHUNK)
        for half in range(halves):
            levels[0].take(_Level(size, mean[:, i, half], squares[:, i, half]), fused)
        level, carry = 1, i + 1
        while level < depth and carry & 1 == 0:
            levels[level].take(levels[level - 1], fused)
            level, carry = level + 1, carry >> 1
    for level in range(1, depth):
        levels[0].take(levels[level], fused)
    return levels[0]


def _finish(tail: Array, level: _Level, fused: bool, fused_tail: bool) -> tuple[Array, Array]:
    """`torch_moments._finish`, before the division."""
    kind = tail.dtype.type
    mean, squares = np.zeros((2, len(tail)), tail.dtype)
    for count, column in enumerate(tail.T, 1):
        delta = column - mean
        mean = mean + delta / kind(count)
        squares = multiply_add(delta, column - mean, squares, fused_tail)
    count, lane_count = tail.shape[1], level.count
    for i in range(level.mean.shape[1]):
        total = count + lane_count
        share = kind(0) if total == 0 else kind(lane_count) / kind(total)
        delta = level.mean[:, i] - mean
        mean = multiply_add(share, delta, mean, fused)
        gain = multiply_add(delta * delta * share, kind(count), level.squares[:, i], fused)
        squares = squares + gain
        count = total
    return mean, squares


def normalise(
    x: Array, mean: Array, rstd: Array, weight: Array, scaled: bool, bias: Array, folded: bool,
    fused: bool, y: Array,
) -> None:  # fmt: skip
    """`torch_cpu._normalise`: into y."""
    r, m = rstd[:, None], mean[:, None]
    with np.errstate(all="ignore"):
        if folded:
            xhat = multiply_add(x, r, -r * m, fused)
            y[:] = multiply_add(xhat, weight, bias, fused)
        elif scaled:
            y[:] = multiply_add((x - m) * r, weight, bias, fused)
        else:
            y[:] = multiply_add(x - m, r, bias, fused)
