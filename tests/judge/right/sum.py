"""Right sums: orders, blocks, trees, lanes, products with ones, compensated, exact, wider."""

import functools
import math

import numpy as np


def _rows(x, axis):
    """x with the axes of the sum last, as one."""
    axes = tuple(range(x.ndim)) if axis is None else axis if np.iterable(axis) else (axis,)
    axes = sorted(a % x.ndim for a in axes)
    kept = [a for a in range(x.ndim) if a not in axes]
    moved = np.transpose(x, (*kept, *axes))
    return moved.reshape(*moved.shape[: len(kept)], math.prod(x.shape[a] for a in axes))


def _in_order(rows, order):
    total = np.zeros(rows.shape[:-1], rows.dtype)
    for i in order:
        total = total + rows[..., i]
    return total


def library_sum(x, axis=-1):
    return x.sum(tuple(axis) if np.iterable(axis) else axis)


def sequential_sum(x, axis=-1):
    rows = _rows(x, axis)
    return _in_order(rows, range(rows.shape[-1]))


def reversed_sum(x, axis=-1):
    rows = _rows(x, axis)
    return _in_order(rows, range(rows.shape[-1] - 1, -1, -1))


def shuffled_sum(x, axis=-1):
    rows = _rows(x, axis)
    return _in_order(rows, np.random.default_rng(0).permutation(rows.shape[-1]))


def smallest_first_sum(x, axis=-1):
    rows = _rows(x, axis)
    ordered = np.take_along_axis(rows, np.argsort(np.abs(rows), axis=-1), -1)
    return _in_order(ordered, range(rows.shape[-1]))


def lanes_sum(x, axis=-1):
    rows = _rows(x, axis)
    return functools.reduce(
        np.add, [_in_order(rows[..., i::8], range(-(-(rows.shape[-1] - i) // 8))) for i in range(8)]
    )


def blocked_sum(x, axis=-1):
    rows = _rows(x, axis)
    starts = range(0, max(rows.shape[-1], 1), 16)
    return functools.reduce(np.add, [rows[..., i : i + 16].sum(-1) for i in starts])


def tree_sum(x, axis=-1):
    """Halves added to halves, as in a block's shared memory, padded with zeros."""
    rows = _rows(x, axis)
    size = 1 << max(rows.shape[-1] - 1, 0).bit_length()
    padded = np.zeros((*rows.shape[:-1], size), rows.dtype)
    padded[..., : rows.shape[-1]] = rows
    while size > 1:
        size //= 2
        padded = padded[..., :size] + padded[..., size:]
    return padded[..., 0]


def butterfly_sum(x, axis=-1):
    """Neighbours first, as by shuffles in a warp."""
    rows = _rows(x, axis)
    if not rows.shape[-1]:
        return np.zeros(rows.shape[:-1], rows.dtype)
    while rows.shape[-1] > 1:
        odd = rows[..., -1:] if rows.shape[-1] % 2 else rows[..., :0]
        even = rows[..., : rows.shape[-1] - odd.shape[-1]]
        rows = np.concatenate([even[..., ::2] + even[..., 1::2], odd], axis=-1)
    return rows[..., 0]


def ones_sum(x, axis=-1):
    rows = _rows(x, axis)
    return np.matmul(rows, np.ones((rows.shape[-1], 1), x.dtype))[..., 0]


def two_stage_sum(x, axis=-1):
    """Partial sums of a grid, which a second kernel adds from the last one on."""
    rows = _rows(x, axis)
    size = max(-(-rows.shape[-1] // 5), 1)
    parts = [rows[..., i : i + size].sum(-1) for i in range(0, max(rows.shape[-1], 1), size)]
    return functools.reduce(np.add, parts[::-1])


def compensated_sum(x, axis=-1):
    rows = _rows(x, axis)
    total = lost = np.zeros(rows.shape[:-1], x.dtype)
    for i in range(rows.shape[-1]):
        term = rows[..., i] - lost
        larger = total + term
        error = (larger - total) - term
        total, lost = larger, np.where(np.isfinite(error), error, 0).astype(x.dtype)
    return total


def neumaier_sum(x, axis=-1):
    rows = _rows(x, axis)
    total = lost = np.zeros(rows.shape[:-1], x.dtype)
    for i in range(rows.shape[-1]):
        term = rows[..., i]
        larger = total + term
        above = np.abs(total) >= np.abs(term)
        error = np.where(above, (total - larger) + term, (term - larger) + total)
        lost = lost + np.where(np.isfinite(error), error, 0).astype(x.dtype)
        total = larger
    return total + lost


def float64_sum(x, axis=-1):
    return _rows(x, axis).sum(-1, dtype=np.float64).astype(x.dtype)


def float32_inside_sum(x, axis=-1):
    return _rows(x, axis).astype(np.float32).sum(-1).astype(x.dtype)


TOTALS = {
    name.removesuffix("_sum"): function
    for name, function in list(globals().items())
    if name.endswith("_sum")
}
"""By name, every way of adding along the last axis."""
