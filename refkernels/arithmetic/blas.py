"""Float64 matrix products, and what may be assumed of the BLAS that computes them.

Bounds of sums hold for each element of a product that is the sum of its own K products, added in
any order, in IEEE double precision, with or without FMA. A BLAS need not keep to that: Strassen's
algorithm mixes blocks (its error is bounded by norms of whole matrices), and a product may run in
reduced precision. `conventional` looks at what the BLAS does. Where it does something else, NumPy's
own loops compute the product.

`conventional` speaks of products up to a shape, so larger ones are cut into TILE.
"""

import functools
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import threadpoolctl

Doubles = npt.NDArray[np.float64]

TILE = ROWS, DEPTH, COLUMNS = 512, 1024, 1024
"""The largest product that BLAS is asked for: (ROWS, DEPTH) by (DEPTH, COLUMNS)."""

multiply = np.matmul

_THREADS = threading.RLock()  # the number of a BLAS's threads belongs to the whole process
_held = [0]


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Each product runs on the thread that asks for it. A BLAS may add in another order on another
    number of threads. Others who ask wait: a BLAS takes its number back from who changed it."""
    with _THREADS, _controller().limit(limits=1, user_api="blas"):
        _held[0] += 1
        try:
            yield
        finally:
            _held[0] -= 1


@functools.cache
def _controller() -> Any:
    return threadpoolctl.ThreadpoolController()


@functools.cache
def conventional(rows: int, terms: int, columns: int) -> bool:
    """Whether NumPy's product of matrices of at most this shape adds each element's own terms.

    The last quarter of a product whose left upper blocks are huge and odd, and whose other blocks
    are ones: it is `terms` exactly, unless the huge blocks were mixed in and subtracted again (as
    Strassen and Winograd do) or the product ran in less than double precision.
    """
    left, right = np.ones((rows, terms)), np.ones((terms, columns))
    left[: rows // 2, : terms // 2] = 2.0**60 / 3.0
    right[: terms // 2, : columns // 2] = 2.0**60 / 7.0
    fine = 1.0 + 2.0**-40
    right[:, -1] = fine
    # A helper of the thread that holds the BLAS would wait for it for ever.
    with nullcontext() if _held[0] else on_one_thread():
        result = multiply(left, right)
    quarter = result[rows // 2 :, columns // 2 :]
    return bool((quarter[:, :-1] == terms).all() and (quarter[:, -1] == terms * fine).all())


def product(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Doubles:
    """a @ b, of (..., m, k) and (..., k, n): each element is the sum of its own k products, added
    in some order, with at most k roundings on the way of a term.

    Requires float64 arrays of two axes at least; batch axes broadcast.
    """
    shape = a.shape[-2], a.shape[-1], b.shape[-1]
    if all(n <= limit for n, limit in zip(shape, TILE, strict=True)):
        return _tile(a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.zeros((*batch, shape[0], shape[2]))
    for i, k, j in itertools.product(*map(_cuts, shape, TILE)):
        result[..., i, j] += _tile(a[..., i, k], b[..., k, j])
    return result


def _cuts(length: int, most: int) -> list[slice]:
    return [slice(start, min(start + most, length)) for start in range(0, length, most)]


def _tile(a: Doubles, b: Doubles) -> Doubles:
    """A product within TILE. The BLAS is asked about the next powers of two, so that it is asked
    seldom, and a small product does not wait for a large one."""
    shape = a.shape[-2], a.shape[-1], b.shape[-1]
    if 0 in shape or conventional(*(1 << (n - 1).bit_length() for n in shape)):
        return np.asarray(multiply(a, b))
    return np.asarray(np.einsum("...mk,...kn->...mn", a, b, optimize=False))
