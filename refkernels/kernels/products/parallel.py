"""Tasks on threads, and NumPy's BLAS on the thread that calls it.

A BLAS may add in another order when it runs on another number of threads. So it is held to one
thread, and the parallelism is between tiles whose shapes depend on the problem alone: the answer
has the same bits whatever the number of threads.
"""

import collections
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba

from refkernels.arithmetic import blas
from refkernels.arithmetic.mode import in_default_mode


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

    def alone(*given: Any) -> Any:
        with blas.on_one_thread():
            return task(*given)

    with blas.on_one_thread():
        return run(alone, arguments)
