"""Winograd's minimal filtering F(m, 3): m outputs of three taps by m + 2 products on an axis,

    y = A^T ((G g) * (B^T d)),   d the window of a tile, g the taps, * elementwise,

with the points 0, 1, -1, infinity for m = 2, and also 2, -2 for m = 4. With several axes the
transforms follow one after the other. The products are summed over the channels in between.

Source: Lavin and Gray (2016), "Fast algorithms for convolutional neural networks",
arXiv:1509.09308.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

_B = {
    2: ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    4: (
        (4, 0, -5, 0, 1, 0), (0, -4, -4, 1, 1, 0), (0, 4, -4, -1, 1, 0), (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0), (0, 4, 0, -5, 0, 1),
    ),
}  # fmt: skip
_G = {
    2: ((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2)),
    4: ((6, 0, 0), (-4, -4, -4), (-4, 4, -4), (1, 2, 4), (1, -2, 4), (0, 0, 24)),
}
_OVER = {2: 2, 4: 24}  # denominators of G
_A = {
    2: ((1, 1, 1, 0), (0, 1, -1, -1)),
    4: ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
}


def convolved(m: int) -> Callable[..., Any]:
    """F(m, 3) as a formula of (xp, d, g, places, rank): y (rows, groups, out channels).

    d        (rows, groups, channels, (m + 2)^rank): each row's tile
    g        (1, groups, out channels, channels, 3^rank)
    places   (rank, rows) where in its tile the row's output lies
    """

    def formula(xp: Any, d: Any, g: Any, places: Any, rank: int) -> Any:
        rows, groups, channels, _ = d.shape
        out, wide = g.shape[2], (m + 2,) * rank
        data = xp.reshape(d, (rows, groups, channels, *wide))
        taps = xp.reshape(g, (groups, out, channels, *(3,) * rank))
        for axis in range(3, 3 + rank):
            data = _transformed(xp, data, _matrix(xp, _B[m]), axis)
            taps = _transformed(xp, taps, _matrix(xp, _G[m], _OVER[m]), axis)
        elements = (m + 2) ** rank
        data = xp.transpose(xp.reshape(data, (rows, groups, channels, elements)), (1, 3, 0, 2))
        taps = xp.transpose(xp.reshape(taps, (groups, out, channels, elements)), (0, 3, 2, 1))
        y = xp.transpose(xp.matmul(data, taps), (2, 0, 3, 1))  # (rows, groups, out, elements)
        y = xp.reshape(y, (rows, groups, out, *wide))
        for place in places[::-1]:
            weights = xp.take(_matrix(xp, _A[m]), place, axis=0)
            shape = (rows, *(1,) * (len(y.shape) - 2), m + 2)
            y = xp.sum(y * xp.reshape(weights, shape))
            y = xp.reshape(y, y.shape[:-1])
        return y

    return formula


def _matrix(xp: Any, rows: Any, over: int = 1) -> Any:
    numbers = [xp.number(Fraction(value, over)) for row in rows for value in row]
    flat = xp.concatenate([xp.reshape(value, (1,)) for value in numbers])
    return xp.reshape(flat, np.shape(rows))


def _transformed(xp: Any, a: Any, matrix: Any, axis: int) -> Any:
    """The matrix times a along an axis."""
    last = [k for k in range(len(a.shape)) if k != axis] + [axis]
    moved = xp.transpose(a, last)
    flat = xp.reshape(moved, (1, int(np.prod(moved.shape[:-1])), a.shape[axis]))
    product = xp.matmul(flat, xp.reshape(xp.transpose(matrix, (1, 0)), (1, *matrix.shape[::-1])))
    transformed = xp.reshape(product, (*moved.shape[:-1], matrix.shape[0]))
    return xp.transpose(transformed, tuple(np.argsort(last)))
