"""Float64 matrix products, and the tests that the BLAS must pass to compute them.

Bounds of sums hold for each element of a product that is the sum of its own K products, added in
any order, in IEEE double precision, with or without FMA. A BLAS need not compute that: Strassen's
algorithm mixes blocks (its error is bounded by norms of whole matrices), and a product may run in
reduced precision. `conventional` tests the BLAS. If it fails, NumPy's own loops compute the
product.

`conventional` vouches for products up to a shape, so larger ones are cut into tiles.
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
"""The largest product that BLAS computes: (ROWS, DEPTH) by (DEPTH, COLUMNS)."""

multiply = np.matmul

_THREADS = threading.Lock()
_inside = 0  # how many threads are inside `on_one_thread`
# the libraries whose limit is the process's, and their former limits
_before: list[tuple[Any, int]] = []


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Inside the block each product runs on the calling thread. A BLAS may add in another order on
    another number of threads.

    Several threads may be inside at once. Where the limit is a thread's own (OpenMP), each sets and
    restores it; where it is the process's, the first thread in sets it, the last one out restores
    it.
    """
    global _inside
    per_thread, shared = _libraries()
    their_limits = [(library, library.get_num_threads()) for library in per_thread]
    with _THREADS:
        if not _inside:
            _before[:] = [(library, library.get_num_threads()) for library in shared]
            _set((library, 1) for library in shared)
        _inside += 1
    _set((library, 1) for library in per_thread)
    try:
        yield
    finally:
        _set(their_limits)
        with _THREADS:
            _inside -= 1
            if not _inside:
                _set(_before)


def _set(limits: Iterable[tuple[Any, int]]) -> None:
    """From threadpoolctl 3.7 on, a library obeys the first thread that sets its limit, and no
    other thread until that one has finished."""
    for library, number in limits:
        clear = getattr(library, "clear_controlling_thread", lambda force: None)
        clear(force=True)
        library.set_num_threads(number)
        clear(force=True)


@functools.cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """The loaded BLAS libraries: those with a limit for each thread, and those with one for all."""
    libraries = threadpoolctl.ThreadpoolController().lib_controllers
    blas_libraries = [library for library in libraries if library.user_api == "blas"]
    per_thread = [
        library for library in blas_libraries if getattr(library, "threading_layer", "") == "openmp"
    ]
    return per_thread, [library for library in blas_libraries if library not in per_thread]


@functools.cache
def conventional(rows: int, terms: int, columns: int) -> bool:
    """Whether NumPy's product of matrices of at most this shape adds each element's own terms.

    Of each factor the upper left block is huge, with a full significand, and the rest is ones (in
    the last column 1 + 2^-40). So the lower right quarter of the product is `terms` (times
    1 + 2^-40) exactly, unless the huge blocks were mixed in and subtracted again, as Strassen and
    Winograd do, or the product ran in less than double precision.
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
    in some order, each term through at most k roundings. The order, and so the bits, do not
    depend on how many threads the BLAS may use.

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


def _cuts(length: int, longest: int) -> list[slice]:
    return [slice(start, min(start + longest, length)) for start in range(0, length, longest)]


def _tile(a: Doubles, b: Doubles) -> Doubles:
    """A product within a tile. The BLAS is tested at the next powers of two, so that tests are few
    and a small product does not wait for the test of a large one."""
    shape = a.shape[-2], a.shape[-1], b.shape[-1]
    if 0 in shape or conventional(*(1 << (n - 1).bit_length() for n in shape)):
        return np.asarray(multiply(a, b))
    return np.asarray(np.einsum("...mk,...kn->...mn", a, b, optimize=False))
