"""The float64 tier: one product by NumPy's BLAS, and a bound on its error.

K is cut into C nearly equal chunks of at most DEPTH terms. BLAS adds up a chunk, in an unknown
order; the chunks' sums are added one after the other. So a term passes through at most
n = k + C - 1 roundings, k being the length of a chunk: its product's, k - 1 additions, C - 1
additions (or n - 1, where float64 holds every product). Whatever the order, with or without FMA,

    |c - z| <= gamma_n sum_l |a_il b_lj| <= gamma_n |a_i| |b_j|,    gamma_n = n u / (1 - n u)

by Cauchy-Schwarz, |a_i| and |b_j| being Euclidean norms: O(n^2) work (Higham 2002, "Accuracy and
Stability of Numerical Algorithms", section 3.1, doi:10.1137/1.9780898718027). The squared norms are
float64 sums of K rounded squares: too small by a factor of at least 1 - (K + 1) u. The factor
1 + (n + K + 64) 2^-52 covers this, gamma's denominator and the roundings of the bound itself while
n + K < 2^40.

Assumption: 2^-420 <= |a|, |b| < 2^481, or zero, as in `dot2`: nothing under- or overflows,
squares included. All numbers of float32 and narrower formats lie inside.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas
from refkernels.arithmetic.blas import COLUMNS, DEPTH, ROWS
from refkernels.arithmetic.blocks import BLOCK, each
from refkernels.arithmetic.enclosure import trusted
from refkernels.arithmetic.question import Question

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_SMALLEST_WORK, _NARROWEST = 2**18, 16  # below this, the Dot2 kernel is as fast


def suits(shape: tuple[int, int, int], terms: int) -> bool:
    """Whether BLAS pays for (batch, M, N) answers of that many terms, and can be trusted."""
    _, rows, columns = shape
    if min(rows, columns) < _NARROWEST or rows * columns * terms < _SMALLEST_WORK:
        return False
    return blas.conventional(*blas.TILE)


def enclosed(
    left: Floats,
    right: Floats,
    at: tuple[Indices, Indices],
    exact_products: bool,
    question: Question,
) -> tuple[Floats, Floats, Indices]:
    """hi, radius and the flat indices of the elements that the question leaves open, for finite
    operands in range. The rows of a tile are tested while they are in the cache."""
    rows, columns = each(_norms, [("pik,pik->pi", left), ("qkj,qkj->qj", right)])
    rows *= _coefficient(left.shape[2], exact_products)
    shape = (len(at[0]), left.shape[1], right.shape[2])
    hi, radius, marks = np.empty(shape), np.empty(shape), np.empty(shape, np.bool_)

    def task(b: int, i: slice, j: slice) -> None:
        p, q = at[0][b], at[1][b]
        _multiply(left[p, i], right[q, :, j], hi[b, i, j])
        step = max(BLOCK // (j.stop - j.start), 1)
        for k in range(i.start, i.stop, step):
            tile = b, slice(k, min(k + step, i.stop)), j
            np.einsum("i,j->ij", rows[p, tile[1]], columns[q, j], out=radius[tile])
            marks[tile] = question.undecided(trusted(hi[tile], 0.0, radius[tile]))

    _each_tile(task, shape)
    return hi, radius, np.flatnonzero(marks)


def product(left: Floats, right: Floats, at: tuple[Indices, Indices]) -> Floats:
    """left @ right alone: each term passes through at most K roundings."""
    result = np.empty((len(at[0]), left.shape[1], right.shape[2]))

    def task(b: int, i: slice, j: slice) -> None:
        with np.errstate(all="ignore"):
            _multiply(left[at[0][b], i], right[at[1][b], :, j], result[b, i, j])

    _each_tile(task, result.shape)
    return result


def _each_tile(task: Callable[..., None], shape: tuple[int, ...]) -> None:
    """task(batch element, rows, columns) for tiles whose shapes depend on the problem alone. A BLAS
    may add in another order on another number of threads, so each task runs on one thread."""

    def alone(*tile: Any) -> None:
        with blas.on_one_thread():
            task(*tile)

    with blas.on_one_thread():
        each(alone, _tiles(*shape))


def _norms(subscripts: str, operand: Floats) -> Floats:
    return np.sqrt(np.einsum(subscripts, operand, operand))


def _coefficient(terms: int, exact_products: bool) -> float:
    chunks = len(_chunks(terms))
    roundings = -(-terms // chunks) + chunks - 1 - exact_products
    return roundings * 2.0**-53 * (1.0 + (roundings + terms + 64) * 2.0**-52)


def _chunks(terms: int) -> list[slice]:
    """Chunks of at most ceil(terms / count); at least one, so that an empty sum is computed too."""
    count = max(-(-terms // DEPTH), 1)
    ends = [terms * n // count for n in range(count + 1)]
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


def _tiles(batch: int, rows: int, columns: int) -> list[tuple[int, slice, slice]]:
    """Tiles, at least two, so that threads can share the work."""
    height = min(ROWS, max(_NARROWEST, -(-rows // 2)))
    return [
        (b, slice(i, min(i + height, rows)), slice(j, min(j + COLUMNS, columns)))
        for b in range(batch)
        for i in range(0, rows, height)
        for j in range(0, columns, COLUMNS)
    ]


def _multiply(left: Floats, right: Floats, result: Floats) -> None:
    first, *later = _chunks(left.shape[1])
    blas.multiply(left[:, first], right[first], out=result)
    part = np.empty(result.shape) if later else result
    for chunk in later:
        blas.multiply(left[:, chunk], right[chunk], out=part)
        result += part
