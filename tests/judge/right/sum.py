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


def folds(step, start):
    """Ways of folding a row by a step whose order is free."""

    def in_order(order):
        def fold(rows):
            total = np.full(rows.shape[:-1], start, rows.dtype)
            for i in order(rows.shape[-1]):
                total = step(total, rows[..., i])
            return total

        return fold

    forwards = in_order(range)

    def lanes(count):
        parts = lambda rows: [forwards(rows[..., i::count]) for i in range(count)]  # noqa: E731
        return lambda rows: functools.reduce(step, parts(rows))

    def blocks(size, back=False):
        def fold(rows):
            parts = [
                forwards(rows[..., i : i + size]) for i in range(0, max(rows.shape[-1], 1), size)
            ]
            return functools.reduce(step, parts[::-1] if back else parts)

        return fold

    def tree(rows):
        while rows.shape[-1] > 1:
            odd = rows[..., rows.shape[-1] // 2 * 2 :]
            even = rows[..., : rows.shape[-1] // 2 * 2]
            rows = np.concatenate([step(even[..., ::2], even[..., 1::2]), odd], -1)
        return rows[..., 0] if rows.shape[-1] else forwards(rows)

    return {
        "library": lambda rows: step.reduce(rows, axis=-1, initial=start), "forwards": forwards,
        "backwards": in_order(lambda n: range(n - 1, -1, -1)),
        "shuffled": in_order(lambda n: np.random.default_rng(0).permutation(n)),
        "inwards": in_order(lambda n: [i // 2 if i % 2 == 0 else n - 1 - i // 2 for i in range(n)]),
        "lanes_of_2": lanes(2), "lanes_of_8": lanes(8), "blocks_of_7": blocks(7),
        "blocks_of_64": blocks(64), "blocks_back": blocks(16, back=True), "tree": tree,
        "float64": lambda rows: step.reduce(
            rows.astype(np.float64), axis=-1, initial=start
        ).astype(rows.dtype),
    }  # fmt: skip


_FOLDS = folds(np.add, 0)


def _smallest_first(rows):
    return _FOLDS["forwards"](np.take_along_axis(rows, np.argsort(np.abs(rows), axis=-1), -1))


def _tree(rows):
    """Halves added to halves, as in a block's shared memory, padded with zeros."""
    size = 1 << max(rows.shape[-1] - 1, 0).bit_length()
    padded = np.zeros((*rows.shape[:-1], size), rows.dtype)
    padded[..., : rows.shape[-1]] = rows
    while size > 1:
        size //= 2
        padded = padded[..., :size] + padded[..., size:]
    return padded[..., 0]


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
    "sequential": _FOLDS["forwards"],
    "reversed": _FOLDS["backwards"],
    "shuffled": _FOLDS["shuffled"],
    "smallest_first": _smallest_first,
    "lanes": _FOLDS["lanes_of_8"],
    "blocked": _FOLDS["blocks_of_7"],
    "tree": _tree,
    "butterfly": _FOLDS["tree"],  # neighbours first, as by shuffles in a warp
    "ones": _ones,
    "two_stage": _FOLDS["blocks_back"],  # partial sums of a grid, added from the last one on
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
