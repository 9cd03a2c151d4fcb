"""The double-double tier: many dot products at once, each with a running bound on its own error.

Within a block of at most BLOCK terms, one step per term of Dot2 (Ogita, Rump, Oishi 2005,
algorithm 5.3, doi:10.1137/030601818), eight lanes or more at a time (`lanes`):

    p + pi = a b           exactly (pi = 0 where float64 holds every product)
    s + sigma = s + p      exactly, by two_sum
    t = fl(pi + sigma);    c = fl(c + t);    d = fl(d + |t|)

s + sum(pi + sigma) is the exact sum of the block, so c's rounding is the only error. Each t
carries at most one rounding and passes at most n - 1 additions into c, n being the number of
terms; with u = 2^-53,

    |s + c - exact| <= gamma_n sum|t|,    sum|t| <= d / (1 - u)^(n-1)

so with n <= BLOCK the error is at most n u d (1 + 2^-40). Where every product is exact, the first
step is exact too (s = 0), t has no rounding, and the two additions to c that meet a zero have
none: max(n - 2, 0) u d suffices. d sums the errors that really occurred: a dot product that
float64 adds up exactly has d = 0 and a radius of zero. (That is why this is tighter than the
a-priori bound gamma_n^2 |a|.|b|.)

The blocks' pairs (s, c) are folded into a pair (high, low): high + e = high + s exactly. two_sum
measures the two roundings of low + (c + e), which are added to the radius. The last factor,
1 + 2^-40 + blocks 2^-50, covers the few roundings of the radius itself.

Assumption: 2^-420 <= |a|, |b| < 2^481, or zero (`matmul_ref.oracle` scales other operands). Then no
product exceeds 2^962, no sum of fewer than 2^45 terms overflows, and every quantity above is a
multiple of 2^-944, so that nothing underflows: two_prod is exact and n u d is a normal number.

Every element has the same bits however it is computed: alone, in a narrow or a wide tile, on any
thread.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic.blocks import spread
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import WIDTH
from refkernels.kernels.products import lanes
from refkernels.kernels.products.lanes import DOT2_ROWS as WIDE_ROWS
from refkernels.kernels.products.lanes import DOT2_VECTORS
from refkernels.kernels.products.lines import Lines, pack, pack_chosen

BLOCK = 128
ROWS, COLUMNS = 64, 256  # of a tile
_SHARE = 2**24  # the fewest terms of a thread's task

_WIDE = DOT2_VECTORS * WIDTH
_FEW = _WIDE - WIDTH  # columns: up to this number, narrow tiles are faster


def dot_products(
    left: Lines, right: Lines, at: tuple[Any, Any], products_exact: bool
) -> tuple[Any, Any, Any]:
    """high + low ± radius, each (batch, M, N): every line of left[at[0][b]] with every one of
    right[at[1][b]].

    One task is a run of tiles; its arithmetic does not depend on the other tasks, nor on which
    thread runs it.
    """
    shape = (len(at[0]), left.number, right.number)
    parts = tuple(np.zeros(shape) for _ in range(3))
    tiles = len(at[0]) * -(-left.number // ROWS) * -(-right.number // COLUMNS)
    work = max(shape[0] * shape[1] * shape[2] * left.terms, 1)
    step = max(tiles * _SHARE // work, 1)

    def task(first: int, last: int) -> None:
        _tiles(*left, *right, *at, products_exact, *parts, first, last)

    spread(tiles, task, step)
    return parts[0], parts[1], parts[2]


def chosen_dot_products(
    left: Lines, right: Lines, chosen: tuple[Any, Any, Any, Any], products_exact: bool
) -> tuple[Any, Any, Any]:
    """high + low ± radius, 1-d: line i of left[p] with line j of right[q], chosen = p, i, q, j."""
    count = chosen[0].size
    # Neighbouring lines that are stored across share cache lines, so they are taken together.
    order = np.argsort(chosen[3] if right.across else chosen[1], kind="stable")
    chosen = tuple(indices[order] for indices in chosen)
    parts = tuple(np.zeros(count) for _ in range(3))
    step = max(_SHARE // (16 * max(left.terms, 1)) // WIDTH, 1) * WIDTH

    def task(first: int, last: int) -> None:
        _chosen(*left, *right, *chosen, products_exact, *parts, first, last)

    spread(count, task, step)
    back = np.argsort(order)
    return parts[0][back], parts[1][back], parts[2][back]


@njit(nogil=True)
def _tiles(
    left: Any, left_across: bool, right: Any, right_across: bool, left_index: Any,
    right_index: Any, products_exact: bool, high: Any, low: Any, radius: Any, first: int, last: int,
) -> None:  # fmt: skip
    _, rows, columns = high.shape
    across = (columns + COLUMNS - 1) // COLUMNS
    per_batch = (rows + ROWS - 1) // ROWS * across
    for n in range(first, last):
        b = n // per_batch
        i0 = n % per_batch // across * ROWS
        j0 = n % across * COLUMNS
        _tile(
            left, left_across, left_index[b], i0, min(i0 + ROWS, rows),
            right, right_across, right_index[b], j0, min(j0 + COLUMNS, columns),
            products_exact, high[b], low[b], radius[b],
        )  # fmt: skip


@inner
def _tile(
    left: Any, left_across: bool, p: int, i0: int, i1: int,
    right: Any, right_across: bool, q: int, j0: int, j1: int,
    products_exact: bool, high: Any, low: Any, radius: Any,
) -> None:  # fmt: skip
    terms = left.shape[1] if left_across else left.shape[2]
    row_panels = np.zeros(((i1 - i0 + 1) // WIDE_ROWS, BLOCK * WIDE_ROWS))
    column_panel = np.zeros(BLOCK * _WIDE)
    state = np.zeros(3 * (i1 - i0 + 1) * (COLUMNS + _WIDE))
    for k0 in range(0, terms, BLOCK):
        n = min(BLOCK, terms - k0)
        error = _block_error(n, products_exact)
        for i in range(i0, i1, WIDE_ROWS):
            panel = row_panels[(i - i0) // WIDE_ROWS]
            pack(left, left_across, p, i, min(i + WIDE_ROWS, i1), k0, n, panel, WIDE_ROWS)
        j, place = j0, 0
        while j < j1:
            rows, lanes_across = _panel(i1 - i0, j1 - j)
            j_end = min(j + lanes_across, j1)
            pack(right, right_across, q, j, j_end, k0, n, column_panel, lanes_across)
            for i in range(i0, i1, rows):
                panel, start = row_panels[(i - i0) // WIDE_ROWS], (i - i0) % WIDE_ROWS
                if rows == WIDE_ROWS:
                    lanes.dot2_wide(
                        panel, start, WIDE_ROWS, column_panel, 0, n, state, place, error
                    )
                else:
                    lanes.dot2_narrow(
                        panel, start, WIDE_ROWS, column_panel, 0, n, state, place, error
                    )
                place += 3 * rows * lanes_across
            j = j_end
    _store(state, i0, i1, j0, j1, _inflation(terms), high, low, radius)


@inner
def _panel(rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of the next panel, of those that remain."""
    if columns > _FEW and rows > 1:
        return WIDE_ROWS, _WIDE
    return 1, WIDTH


@inner
def _store(
    state: Any, i0: int, i1: int, j0: int, j1: int, inflation: float, high: Any, low: Any,
    radius: Any,
) -> None:  # fmt: skip
    """Writes a tile's panels, in the order of `_tile`, into the arrays."""
    j, place = j0, 0
    while j < j1:
        rows, lanes_across = _panel(i1 - i0, j1 - j)
        j_end = min(j + lanes_across, j1)
        part = rows * lanes_across
        for i in range(i0, i1, rows):
            for r in range(min(rows, i1 - i)):
                at = place + r * lanes_across
                for x in range(j_end - j):
                    h, e = two_sum(state[at + x], state[at + part + x])
                    high[i + r, j + x], low[i + r, j + x] = h, e
                    radius[i + r, j + x] = state[at + 2 * part + x] * inflation
            place += 3 * part
        j = j_end


@njit(nogil=True)
def _chosen(
    left: Any, left_across: bool, right: Any, right_across: bool, p: Any, i: Any, q: Any, j: Any,
    products_exact: bool, high: Any, low: Any, radius: Any, first: int, last: int,
) -> None:  # fmt: skip
    terms = left.shape[1] if left_across else left.shape[2]
    a, b = np.zeros(BLOCK * WIDTH), np.zeros(BLOCK * WIDTH)
    state = np.zeros(3 * (last - first + WIDTH))
    for k0 in range(0, terms, BLOCK):  # outside, so that a block of all lines stays in the cache
        n = min(BLOCK, terms - k0)
        error = _block_error(n, products_exact)
        for start in range(first, last, WIDTH):
            width = min(WIDTH, last - start)
            pack_chosen(left, left_across, p[start:], i[start:], width, k0, n, a)
            pack_chosen(right, right_across, q[start:], j[start:], width, k0, n, b)
            lanes.dot2_pairs(a, 0, 0, b, 0, n, state, 3 * (start - first), error)
    inflation = _inflation(terms)
    for start in range(first, last, WIDTH):
        place = 3 * (start - first)
        for x in range(min(WIDTH, last - start)):
            high[start + x], low[start + x] = two_sum(state[place + x], state[place + WIDTH + x])
            radius[start + x] = state[place + 2 * WIDTH + x] * inflation


@inner
def _block_error(n: int, products_exact: bool) -> float:
    """The block's error in units of d."""
    if products_exact:
        return max(n - 2, 0) * 2.0**-53
    return (n if n > 1 else 0) * 2.0**-53


@inner
def _inflation(terms: int) -> float:
    return 1.0 + 2.0**-40 + (terms + BLOCK - 1) // BLOCK * 2.0**-50
