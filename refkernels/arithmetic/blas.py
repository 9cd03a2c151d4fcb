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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import threadpoolctl

Doubles = npt.NDArray[np.float64]

TILE = ROWS, DEPTH, COLUMNS = 512, 1024, 1024
"""The largest product that BLAS is asked for: (ROWS, DEPTH) by (DEPTH, COLUMNS)."""

multiply = np.matmul

_THREADS = threading.Lock()
_inside = 0  # threads that are `on_one_thread`
_before: list[tuple[Any, int]] = []  # the libraries whose limit is the process's, and what it was


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Each product runs on the thread that asks for it. A BLAS may add in another order on another
    number of threads.

    Threads may be inside side by side. Where the limit is a thread's own (OpenMP), each sets and
    restores it; where it is the process's, the first one in sets it, the last one out restores it.
    """
    global _inside
    own, shared = _libraries()
    mine = [(library, library.get_num_threads()) for library in own]
    with _THREADS:
        if not _inside:
            _before[:] = [(library, library.get_num_threads()) for library in shared]
            _set((library, 1) for library in shared)
        _inside += 1
    _set((library, 1) for library in own)
    try:
        yield
    finally:
        _set(mine)
        with _THREADS:
            _inside -= 1
            if not _inside:
                _set(_before)


def _set(limits: Iterable[tuple[Any, int]]) -> None:
    """From threadpoolctl 3.7 on, a library listens to the first thread that sets its limit, and to
    no other until that one is through."""
    for library, number in limits:
        clear = getattr(library, "clear_controlling_thread", lambda force: None)
        clear(force=True)
        library.set_num_threads(number)
        clear(force=True)


@functools.cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """The BLAS that are loaded: those with a limit for each thread, and those with one for all."""
    libraries = threadpoolctl.ThreadpoolController().lib_controllers
    every = [library for library in libraries if library.user_api == "blas"]
    own = [library for library in every if getattr(library, "threading_layer", "") == "openmp"]
    return own, [library for library in every if library not in own]


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
    with on_one_thread():
        result = multiply(left, right)
    quarter = result[rows // 2 :, columns // 2 :]
    return bool((quarter[:, :-1] == terms).all() and (quarter[:, -1] == terms * fine).all())


def product(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Doubles:
    """a @ b, of (..., m, k) and (..., k, n): each element is the sum of its own k products, added
    in some order, with at most k roundings on the way of a term. The order, and so the bits, do
    not depend on how many threads the BLAS may use.

    Requires float64 arrays of two axes at least; batch axes broadcast.
    """
    with on_one_thread():
        return _product(a, b)


def _product(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Doubles:
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
