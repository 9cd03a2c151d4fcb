"""Right sums: orders, blocks, trees, lanes, products with ones, compensated, exact, wider."""

import functools
import math

import numpy as np
from _ways import in_format


def _rows(x, axis):
    """x with the axes of the sum last, as one."""
    axes = tuple(range(x.ndim)) if axis is None else axis if np.iterable(axis) else (axis,)
    axes = sorted(a % x.ndim for a in axes)
    kept = [a for a in range(x.ndim) if a not in axes]
    moved = np.transpose(x, (*kept, *axes))
    return moved.reshape(*moved.shape[: len(kept)], math.prod(x.shape[a] for a in axes))


def _library(rows):
    return rows.sum(-1)


def _in_order(order):
    def total(rows):
        added = np.zeros(rows.shape[:-1], rows.dtype)
        for i in order(rows.shape[-1]):
            added = added + rows[..., i]
        return added

    return total


_sequential = _in_order(range)


def _smallest_first(rows):
    return _sequential(np.take_along_axis(rows, np.argsort(np.abs(rows), axis=-1), -1))


def _lanes(rows):
    return functools.reduce(np.add, [_sequential(rows[..., i::8]) for i in range(8)])


def _parts(rows, size):
    return [rows[..., i : i + size].sum(-1) for i in range(0, max(rows.shape[-1], 1), size)]


def _blocked(rows):
    return functools.reduce(np.add, _parts(rows, 16))


def _two_stage(rows):
    """Partial sums of a grid, which a second kernel adds from the last one on."""
    return functools.reduce(np.add, _parts(rows, max(-(-rows.shape[-1] // 5), 1))[::-1])


def _tree(rows):
    """Halves added to halves, as in a block's shared memory, padded with zeros."""
    size = 1 << max(rows.shape[-1] - 1, 0).bit_length()
    padded = np.zeros((*rows.shape[:-1], size), rows.dtype)
    padded[..., : rows.shape[-1]] = rows
    while size > 1:
        size //= 2
        padded = padded[..., :size] + padded[..., size:]
    return padded[..., 0]


def _butterfly(rows):
    """Neighbours first, as by shuffles in a warp."""
    if not rows.shape[-1]:
        return np.zeros(rows.shape[:-1], rows.dtype)
    while rows.shape[-1] > 1:
        odd = rows[..., -1:] if rows.shape[-1] % 2 else rows[..., :0]
        even = rows[..., : rows.shape[-1] - odd.shape[-1]]
        rows = np.concatenate([even[..., ::2] + even[..., 1::2], odd], axis=-1)
    return rows[..., 0]


def _ones(rows):
    return np.matmul(rows, np.ones((rows.shape[-1], 1), rows.dtype))[..., 0]


def _compensated(rows):
    total = lost = np.zeros(rows.shape[:-1], rows.dtype)
    for i in range(rows.shape[-1]):
        term = rows[..., i] - lost
        larger = total + term
        error = (larger - total) - term
        total, lost = larger, np.where(np.isfinite(error), error, 0).astype(rows.dtype)
    return total


def _neumaier(rows):
    total = lost = np.zeros(rows.shape[:-1], rows.dtype)
    for i in range(rows.shape[-1]):
        term = rows[..., i]
        larger = total + term
        above = np.abs(total) >= np.abs(term)
        error = np.where(above, (total - larger) + term, (term - larger) + total)
        lost = lost + np.where(np.isfinite(error), error, 0).astype(rows.dtype)
        total = larger
    return total + lost


TOTALS = {
    "library": _library,
    "sequential": _sequential,
    "reversed": _in_order(lambda n: range(n - 1, -1, -1)),
    "shuffled": _in_order(lambda n: np.random.default_rng(0).permutation(n)),
    "smallest_first": _smallest_first,
    "lanes": _lanes,
    "blocked": _blocked,
    "tree": _tree,
    "butterfly": _butterfly,
    "ones": _ones,
    "two_stage": _two_stage,
    "compensated": _compensated,
    "neumaier": _neumaier,
    "float64": in_format(np.float64, _library),
    "float32_inside": in_format(np.float32, _library),
}
"""By name, every way of adding along the last axis."""


def _along(total):
    return lambda x, axis=-1: total(_rows(x, axis))


globals().update({f"{name}_sum": _along(total) for name, total in TOTALS.items()})


def _scaled_norm(total, rows):
    """Of numbers scaled by a power of two, so that no square overflows or vanishes."""
    largest = np.abs(rows).max(-1, keepdims=True, initial=0)
    _, exponent = np.frexp(np.where(np.isfinite(largest), largest, 1))
    scaled = np.ldexp(rows, -exponent)
    return np.ldexp(np.sqrt(total(scaled * scaled)), exponent[..., 0])
