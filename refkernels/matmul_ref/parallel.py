"""Tasks on threads, and NumPy's BLAS on the thread that calls it.

A BLAS may add in another order when it runs on another number of threads. So it is held to one
thread, and the parallelism is between tiles whose shapes depend on the problem alone: the answer
has the same bits whatever the number of threads.

What is assumed of a BLAS: that each element of a product is the sum of its K products, added in
some order, in IEEE double precision, with or without FMA. Strassen's algorithm is not of that kind
(its error is bounded by norms of the whole matrices); `conventional` tells it by what it does.
"""

import collections
import functools
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import threadpoolctl

from refkernels.arithmetic.mode import in_default_mode

_BLAS_THREADS = threading.RLock()  # the number of a BLAS's threads belongs to the whole process


def run(
    task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], pays: bool = True
) -> list[Any]:
    """task(*arguments) for each, on Numba's number of threads (on this one, where that does not
    pay); the results, in order."""
    listed = list(arguments)
    threads = min(numba.get_num_threads(), len(listed)) if pays else 1
    if threads <= 1:
        return [task(*each) for each in listed]
    results: list[Any] = [None] * len(listed)
    waiting = collections.deque(enumerate(listed))

    @in_default_mode
    def work() -> None:
        while True:
            try:
                n, each = waiting.popleft()
            except IndexError:
                return
            results[n] = task(*each)

    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(work) for _ in range(threads - 1)]
        work()
        for other in others:
            other.result()
    return results


def run_products(task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
    """As `run`, for tasks that multiply matrices: each multiplies on its own thread only."""
    with _BLAS_THREADS, _controller().limit(limits=1, user_api="blas"):
        return run(task, arguments)


product = np.matmul


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
    (result,) = run_products(product, [(left, right)])
    quarter = result[rows // 2 :, columns // 2 :]
    return bool((quarter[:, :-1] == terms).all() and (quarter[:, -1] == terms * fine).all())
