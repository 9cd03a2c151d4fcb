"""The slices tier: every product cut without error at one place, whose high slices sum exactly.

Within a block of at most BLOCK terms, with an anchor A = 3 alpha beta for each pair of lines,
alpha and beta being powers of two not less than the Euclidean norm of any block of the line (and
larger by a factor of 1 + 2^-41 at least), and s_0 = A, c_0 = 0:

    s' = fl(a b + s)        one FMA: a b is rounded to a multiple of ulp(A)
    q  = s' - s             exact: that multiple, the high slice of a b
    c' = fl(c + t),  t = fl(a b - q)        one FMA and one addition: the low slice

By Cauchy-Schwarz no partial sum of a block exceeds alpha beta (1 - 2^-41), and the roundings of the
high slices add up to less than the difference: s stays within [2, 4] alpha beta, where float64's
spacing is ulp(A) = 2^-51 alpha beta. So q is exact, s_n - A the exact sum of the high slices, and

    |a b - q| <= tau = 2^-52 alpha beta.

The sum of the low slices is all that is rounded: t by u tau (u = 2^-53), and the k-th addition, for
k >= 2, by u k tau (1 + 2^-40). Together, for n terms, at most u tau n (n + 3) / 2 (1 + 2^-40).
Blocks are folded into a pair as in `dot2`, with the losses measured. An anchor in place of two_sum
makes 4 operations of Dot2's 12; Rump, Ogita, Oishi (2008), "Accurate floating-point summation
part I", doi:10.1137/050645671, section 3, is where such extractions are analysed.

Assumption: 2^-420 <= |a|, |b| < 2^481, or zero, so nothing under- or overflows, the squares in the
norms included: a nonzero a b - q is a multiple of 2^-944.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.blocks import spread
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import WIDTH
from refkernels.kernels.products import lanes
from refkernels.kernels.products.lanes import SLICES_ROWS, SLICES_VECTORS
from refkernels.kernels.products.lines import Lines, pack

BLOCK = 32  # a longer block is faster, but its error grows as the square of its length
ROWS, COLUMNS, DEPTH = 128, 128, 128  # of a tile
_ACROSS = SLICES_VECTORS * WIDTH
_SHARE = 2**24  # the fewest terms of a thread's task
_ERROR = BLOCK * (BLOCK + 3) / 2 * 2.0**-105  # of one block, in units of alpha beta


def dot_products(left: Lines, right: Lines, at: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """high + low ± radius, each (batch, M, N): every line of left[at[0][b]] with every one of
    right[at[1][b]]; the same bits whatever the threads."""
    shape = (len(at[0]), left.number, right.number)
    parts = tuple(np.empty(shape) for _ in range(3))
    alpha, beta = _scales(*left), _scales(*right)
    alpha *= 3.0
    tiles = len(at[0]) * -(-left.number // ROWS) * -(-right.number // COLUMNS)
    work = max(shape[0] * shape[1] * shape[2] * left.terms, 1)
    step = max(tiles * _SHARE // work, 1)

    def task(first: int, last: int) -> None:
        _tiles(*left, alpha, *right, beta, *at, *parts, first, last)

    spread(tiles, task, step)
    return parts[0], parts[1], parts[2]


@njit(nogil=True)
def _scales(lines: Any, across: bool) -> Any:
    """For each line, the power of two not less than (1 + 2^-41) times any block's norm; or zero.

    (A sum of BLOCK rounded squares is too small by (BLOCK + 1) u at most.) Padded with zeros to
    whole panels of any kind.
    """
    terms, count = (lines.shape[1], lines.shape[2]) if across else (lines.shape[2], lines.shape[1])
    largest = np.zeros((lines.shape[0], count + ROWS))
    sums = np.empty(count)
    for p in range(lines.shape[0]):
        for k0 in range(0, terms, BLOCK):
            k1 = min(k0 + BLOCK, terms)
            sums[:] = 0.0
            if across:
                for k in range(k0, k1):
                    for line in range(count):
                        sums[line] += lines[p, k, line] * lines[p, k, line]
            else:
                for line in range(count):
                    for k in range(k0, k1):
                        sums[line] += lines[p, line, k] * lines[p, line, k]
            for line in range(count):
                largest[p, line] = max(largest[p, line], sums[line])
        for line in range(count):
            if largest[p, line] > 0.0:
                norm = np.sqrt(largest[p, line]) * (1.0 + 2.0**-40)
                largest[p, line] = math.ldexp(1.0, math.frexp(norm)[1])
    return largest


@njit(nogil=True)
def _tiles(
    left: Any, left_across: bool, alpha: Any, right: Any, right_across: bool, beta: Any,
    left_index: Any, right_index: Any, high: Any, low: Any, radius: Any, first: int, last: int,
) -> None:  # fmt: skip
    _, rows, columns = high.shape
    across = (columns + COLUMNS - 1) // COLUMNS
    per_batch = (rows + ROWS - 1) // ROWS * across
    row_panels = np.zeros((ROWS // SLICES_ROWS, DEPTH * SLICES_ROWS))
    column_panel = np.zeros(DEPTH * _ACROSS)
    state = np.empty(3 * ROWS * COLUMNS)
    for n in range(first, last):
        b = n // per_batch
        i0, j0 = n % per_batch // across * ROWS, n % across * COLUMNS
        p, q = left_index[b], right_index[b]
        _tile(
            left, left_across, p, i0, min(i0 + ROWS, rows), alpha[p],
            right, right_across, q, j0, min(j0 + COLUMNS, columns), beta[q],
            row_panels, column_panel, state, high[b], low[b], radius[b],
        )  # fmt: skip


@inner
def _tile(
    left: Any, left_across: bool, p: int, i0: int, i1: int, alpha: Any,
    right: Any, right_across: bool, q: int, j0: int, j1: int, beta: Any,
    row_panels: Any, column_panel: Any, state: Any, high: Any, low: Any, radius: Any,
) -> None:  # fmt: skip
    terms = left.shape[1] if left_across else left.shape[2]
    state[:] = 0.0
    for k0 in range(0, terms, DEPTH):
        depth = min(DEPTH, terms - k0)
        for i in range(i0, i1, SLICES_ROWS):
            panel = row_panels[(i - i0) // SLICES_ROWS]
            pack(left, left_across, p, i, min(i + SLICES_ROWS, i1), k0, depth, panel, SLICES_ROWS)
        place = 0
        for j in range(j0, j1, _ACROSS):
            pack(right, right_across, q, j, min(j + _ACROSS, j1), k0, depth, column_panel, _ACROSS)
            for i in range(i0, i1, SLICES_ROWS):
                panel = row_panels[(i - i0) // SLICES_ROWS]
                for k in range(0, depth, BLOCK):
                    lanes.slices_wide(
                        panel, k * SLICES_ROWS, SLICES_ROWS, column_panel, k * _ACROSS,
                        min(BLOCK, depth - k), state, place, alpha, i, beta, j,
                    )  # fmt: skip
                place += 3 * SLICES_ROWS * _ACROSS
    blocks = (terms + BLOCK - 1) // BLOCK
    _store(state, i0, i1, alpha, j0, j1, beta, blocks, high, low, radius)


@inner
def _store(
    state: Any, i0: int, i1: int, alpha: Any, j0: int, j1: int, beta: Any, blocks: int,
    high: Any, low: Any, radius: Any,
) -> None:  # fmt: skip
    """Writes a tile's panels, in the order of `_tile`; alpha is three times too large.

    The factor covers the roundings of the radius, those of its running sum included.
    """
    part = SLICES_ROWS * _ACROSS
    inflation = 1.0 + 2.0**-40 + blocks * 2.0**-50
    place = 0
    for j in range(j0, j1, _ACROSS):
        for i in range(i0, i1, SLICES_ROWS):
            for r in range(min(SLICES_ROWS, i1 - i)):
                at = place + r * _ACROSS
                error = blocks * _ERROR * (alpha[i + r] / 3.0) * inflation
                for x in range(min(_ACROSS, j1 - j)):
                    h, e = two_sum(state[at + x], state[at + part + x])
                    lost = state[at + 2 * part + x]
                    high[i + r, j + x], low[i + r, j + x] = h, e
                    radius[i + r, j + x] = (lost + error * beta[j + x]) * inflation
            place += 3 * part
