"""The fast tier: many dot products at once, each with a running bound on its own error.

Within a block of at most BLOCK terms, one step per term of Dot2 (Ogita, Rump, Oishi 2005,
algorithm 5.3, doi:10.1137/030601818):

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

The blocks' pairs (s, c) are folded into a pair (high, low): high + e = high + s exactly, and the
two roundings of low + (c + e) are measured by two_sum and added to the radius as they are. The
few roundings of the radius itself are covered by the last factor, 1 + 2^-40 + blocks 2^-50.

Assumption: 2^-420 <= |a|, |b| < 2^481, or zero. Then no product exceeds 2^962, no sum of fewer
than 2^45 terms overflows, and every quantity above is a multiple of 2^-944, so that nothing
underflows: two_prod is exact and n u d is a normal number. (`oracle.py` scales what lies outside.)
"""

from typing import Any

import numpy as np

from refkernels.arithmetic.eft import two_prod, two_sum
from refkernels.arithmetic.jit import njit, prange

BLOCK = 128
COLUMNS = 64
ROWS = 16


@njit(parallel=True)
def dot_products(
    left: Any,
    right: Any,
    left_index: Any,
    right_index: Any,
    products_exact: bool,
    high: Any,
    low: Any,
    radius: Any,
) -> None:
    """Fill high + low ± radius, (batch, M, N), from left (P, M, K) and right (Q, K, N).

    One task is a tile of one batch element; its arithmetic does not depend on the other tasks,
    nor on which thread runs it.
    """
    batch, rows, columns = high.shape
    row_tiles = (rows + ROWS - 1) // ROWS
    column_tiles = (columns + COLUMNS - 1) // COLUMNS
    for task in prange(batch * row_tiles * column_tiles):
        b = task // (row_tiles * column_tiles)
        tile = task % (row_tiles * column_tiles)
        i0 = (tile // column_tiles) * ROWS
        j0 = (tile % column_tiles) * COLUMNS
        i1, j1 = min(i0 + ROWS, rows), min(j0 + COLUMNS, columns)
        _tile(
            left[left_index[b], i0:i1],
            right[right_index[b], :, j0:j1],
            products_exact,
            high[b, i0:i1, j0:j1],
            low[b, i0:i1, j0:j1],
            radius[b, i0:i1, j0:j1],
        )


@njit
def _tile(left: Any, right: Any, products_exact: bool, high: Any, low: Any, radius: Any) -> None:
    rows, terms = left.shape
    width = right.shape[1]
    s, c, d = np.empty(width), np.empty(width), np.empty(width)
    high[:], low[:], radius[:] = 0.0, 0.0, 0.0
    blocks = (terms + BLOCK - 1) // BLOCK
    inflation = 1.0 + 2.0**-40 + blocks * 2.0**-50
    for block in range(blocks):
        k0 = block * BLOCK
        k1 = min(k0 + BLOCK, terms)
        n = k1 - k0
        for i in range(rows):
            s[:], c[:], d[:] = 0.0, 0.0, 0.0
            if products_exact:
                _exact_products(left[i, k0:k1], right[k0:k1], s, c, d)
                error = max(n - 2, 0) * 2.0**-53
            else:
                _any_products(left[i, k0:k1], right[k0:k1], s, c, d)
                error = (n if n > 1 else 0) * 2.0**-53
            for j in range(width):
                total, e = two_sum(high[i, j], s[j])
                x, first = two_sum(c[j], e)
                rest, second = two_sum(low[i, j], x)
                high[i, j] = total
                low[i, j] = rest
                radius[i, j] += error * d[j] + (abs(first) + abs(second))
    for i in range(rows):
        for j in range(width):
            high[i, j], low[i, j] = two_sum(high[i, j], low[i, j])
            radius[i, j] *= inflation


@njit
def _exact_products(a: Any, b: Any, s: Any, c: Any, d: Any) -> None:
    for k in range(a.size):
        a_k = a[k]
        for j in range(s.size):
            s[j], t = two_sum(s[j], a_k * b[k, j])
            c[j] += t
            d[j] += abs(t)


@njit
def _any_products(a: Any, b: Any, s: Any, c: Any, d: Any) -> None:
    for k in range(a.size):
        a_k = a[k]
        for j in range(s.size):
            p, pi = two_prod(a_k, b[k, j])
            s[j], sigma = two_sum(s[j], p)
            t = pi + sigma
            c[j] += t
            d[j] += abs(t)
