"""The formulas of a convolution and of its gradients, of any number of axes.

    y[g, o] = sum over c, t of x[g, c, t] weight[g, o, c, t] + bias[g, o]        for each place of y
    dx[g, c] = sum over o, t of above[g, o, t] weight[g, o, c, t]                for each place of x
    dweight[g, o, c, t] = sum over m of dy[m, g, o] x[m, g, c, t]                dbias = sum of dy

g are the groups, c and o the channels of a group, t the taps; x[.., t] and above[.., t] are the
elements under the taps of a place, 0 under padding; m are all places of all images.

Forward, `x` is already gathered; backward it is (places of x, g, c), with `places` as indices. Taps
that lie on no element of y are not terms of dx: with a weight that is not finite (`there`) they are
left out, since 0 times that weight is NaN. Padding is zeros, and is multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refkernels.convolution_ref import winograd
from refkernels.convolution_ref.geometry import Source
from refkernels.ops import PerOutput
from refkernels.ops.letters import Signature

FORWARD = Signature.parse("x[... g c t], weight[g o c t], bias[g o]?, row[...]:int -> y[... g o]")
BACKWARD = Signature.parse(
    "dy[m g o], x[... g c], weight[g o c t], bias[g o]?, above[... g o t], row[...]:int, "
    "places[m t]:int, there[... t]?:bool -> dx[... g c], dweight[g o c t], dbias[g o]"
)


def windows(xp: Any, x: Any, places: Any) -> Any:
    """x (places of x, g, c) as (m, g, c, t): the elements under the taps."""
    if places is None:
        return x
    zero = xp.array(np.zeros((1, *x.shape[1:])))
    return xp.transpose(xp.take(xp.concatenate([x, zero], axis=0), places[0], axis=0), (0, 2, 3, 1))


def product(xp: Any, x: Any, weight: Any) -> Any:
    """The sums over c and t, (rows, g, o), from (rows, g, c, t) and (1, g, o, c, t)."""
    rows, groups, channels, taps = x.shape
    terms, out = channels * taps, weight.shape[2]
    left = xp.reshape(xp.transpose(x, (1, 0, 2, 3)), (groups, rows, terms))
    right = xp.transpose(xp.reshape(weight, (groups, out, terms)), (0, 2, 1))
    return xp.transpose(xp.matmul(left, right), (1, 0, 2))


def im2col(
    xp: Any, x: Any, weight: Any, bias: Any = None, places: Any = None, **_: Any
) -> Any:  # fmt: skip
    """A matrix product, then the bias. From the arrays of the backward pass, y has dy's axes."""
    y = product(xp, windows(xp, x, places), weight)
    y = y if bias is None else y + bias
    return y if places is None else xp.reshape(y, (1, *y.shape))


def direct(xp: Any, x: Any, weight: Any, bias: Any = None, **_: Any) -> Any:
    """One sum, which starts with the bias, tap by tap."""
    rows, groups, channels, taps = x.shape
    terms, out = channels * taps, weight.shape[2]
    left = xp.reshape(xp.transpose(x, (1, 0, 3, 2)), (groups, rows, terms))
    right = xp.reshape(xp.transpose(weight, (0, 1, 4, 3, 2)), (groups, terms, out))
    if bias is not None:
        left = xp.concatenate([xp.broadcast(xp.number(1), (groups, rows, 1)), left])
        right = xp.concatenate([xp.reshape(bias, (groups, 1, out)), right], axis=1)
    return xp.transpose(xp.matmul(left, right), (1, 0, 2))


def _filtered(xp: Any, m: int, weight: Any, row: Any, source: Source) -> Any:
    """The element of y of each row, by F(m, 3)."""
    grid = source.grid
    inside = np.unravel_index(row % max(len(grid.windows), 1), grid.out)
    tiles = xp.array(source.at(row, grid.tiles(m)))
    return winograd.convolved(m)(
        xp, tiles, weight, [offset % m for offset in inside], len(grid.axes)
    )


def filtered(m: int) -> Callable[..., Any]:
    """F(m, 3), the bias last; a matrix product where F(m, 3) does not apply."""

    def formula(
        xp: Any, x: Any, weight: Any, row: Any, source: Source, bias: Any = None, **_: Any
    ) -> Any:
        if not source.grid.of_three_taps:
            return im2col(xp, x, weight, bias)
        y = _filtered(xp, m, weight, row, source)
        return y if bias is None else y + bias

    return formula


def swapped(xp: Any, weight: Any) -> Any:
    """The weight as (1, g, c, o, t)."""
    return xp.transpose(weight, (0, 1, 3, 2, 4))


def dx_direct(xp: Any, above: Any, weight: Any, there: Any = None, **_: Any) -> Any:
    """One sum over the output channels and the taps."""
    if there is not None:
        return dx_columns(xp, above, weight, there)
    return product(xp, above, swapped(xp, weight))


def columns_of(xp: Any, above: Any, weight: Any) -> Any:
    """The channels' sums of each tap, stored: (rows, g, c, t)."""
    left = xp.transpose(above, (1, 3, 0, 2))  # (g, t, rows, o)
    right = xp.transpose(xp.reshape(weight, weight.shape[1:]), (0, 3, 1, 2))  # (g, t, o, c)
    return xp.store(xp.transpose(xp.matmul(left, right), (2, 0, 3, 1)))


def dx_columns(xp: Any, above: Any, weight: Any, there: Any = None, **_: Any) -> Any:
    """The stored channels' sums of each tap, and then the sum over the taps (col2im)."""
    columns = columns_of(xp, above, weight)
    if there is not None:
        columns = xp.where(there[:, None, None, :], columns, xp.number(0))
    return xp.reshape(xp.sum(columns), columns.shape[:-1])


def dx_filtered(m: int) -> Callable[..., Any]:
    """By F(m, 3) of dy and the reversed taps."""

    def formula(
        xp: Any, above: Any, weight: Any, row: Any, back: Source, there: Any = None, **_: Any
    ) -> Any:
        if not back.grid.of_three_taps or there is not None:
            return dx_direct(xp, above, weight, there)
        return _filtered(xp, m, reverse(xp, swapped(xp, weight)), row, back)

    return formula


def reverse(xp: Any, weight: Any) -> Any:
    """The weight with its taps in reverse."""
    return xp.take(weight, np.arange(weight.shape[-1])[::-1], axis=-1)


def dweight(xp: Any, dy: Any, x: Any, places: Any, **_: Any) -> Any:
    """The gradient of the weight, (g, o, c, t)."""
    return dweight_of(xp, dy, windows(xp, x, places))


def dweight_of(xp: Any, dy: Any, x: Any) -> Any:
    m, groups, channels, taps = x.shape
    left = xp.transpose(xp.reshape(dy, dy.shape[1:]), (1, 2, 0))
    right = xp.reshape(xp.transpose(x, (1, 0, 2, 3)), (groups, m, channels * taps))
    return xp.reshape(xp.matmul(left, right), (groups, dy.shape[3], channels, taps))


def dbias(xp: Any, dy: Any, **_: Any) -> Any:
    """The gradient of the bias, (1, g, o)."""
    return xp.reshape(xp.sum(dy, 1), (1, *dy.shape[2:]))


TRUTH = PerOutput((im2col,))
BACKWARD_TRUTH = PerOutput((dx_direct, dweight, dbias))
FORMS = {
    "direct": PerOutput((direct,)),
    "im2col": TRUTH,
    "winograd_2": PerOutput((filtered(2),)),
    "winograd_4": PerOutput((filtered(4),)),
}
BACKWARDS = {
    "direct": BACKWARD_TRUTH,
    "im2col": PerOutput((dx_columns, dweight, dbias)),
    "winograd_2": PerOutput((dx_filtered(2), dweight, dbias)),
    "winograd_4": PerOutput((dx_filtered(4), dweight, dbias)),
}
