"""The one pool of threads, as many as Numba may use: for blocks of flat arrays, or a list of tasks.

Tasks are Python's; their kernels are compiled with nogil=True. Unlike Numba's parallel loops they
may be started from several threads at once under every threading layer, one compiled kernel serves
small arrays and large ones, and Python code between two kernels runs in the block while it is in
the cache. A task writes to its own elements only, so results depend neither on which thread took
which block nor on the number of threads.
"""

import functools
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent import futures
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import small
from refkernels.arithmetic.mode import with_default_fenv

SPAN = 1024
"""Elements that a kernel's inner loop takes at a time: its scratch stays in the L1 cache."""
BLOCK = 64 * SPAN
"""Elements that a thread takes at a time: far more work than the cost of asking for the next."""
CACHED = BLOCK // 2
"""The same for a formula or a kernel of several columns: they stay in the second-level cache."""

TIMED = CACHED // 4
"""Elements of a first block, whose time predicts that of the others."""
HANDED_OVER = 1.2e-4
"""Seconds of work from which a helper pays: its start and the locks take 30 to 100 us."""

_thread = threading.local()  # .inside: whether this thread runs a task


@with_default_fenv
def spread(
    size: int, task: Callable[[int, int], Any], block: int = CACHED, *, timed: bool = False
) -> None:
    """task(start, stop) for all blocks of range(size), each once, in any order.

    `timed`: a small first block runs alone. If its time predicts that the others will end before a
    helper could start, no helper runs.
    Raises what a task raises, once no other task runs; blocks that have not begun are dropped.
    Called inside a task, it runs on that task's thread only: helpers are busy, and might wait for
    one another.
    """
    first = helpers = 0
    if size > block and not getattr(_thread, "inside", False):
        import numba

        pays = True
        if timed:
            began, first = time.perf_counter(), min(TIMED, block)
            task(0, first)
            seconds = time.perf_counter() - began
            pays = seconds * (size - first) > HANDED_OVER * first
        helpers = pays * (min(numba.get_num_threads(), -(-(size - first) // block)) - 1)
    if not helpers:
        for start in range(first, size, block):
            task(start, min(start + block, size))
        return
    failures: list[BaseException] = []
    job = [task, itertools.count(first, block), size, block, failures]  # count's step is atomic
    running = [_pool().submit(_work, job) for _ in range(helpers)]
    _work(job)
    for future in running:
        if not future.cancel():
            future.exception()  # waits
    job.clear()  # a helper drops it later, and the task's arrays would stay allocated until then
    if failures:
        raise failures[0]


def each(task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], pays: bool = True) -> Any:
    """[task(*values) for values in arguments], in that order; on this thread alone where helpers do
    not pay."""
    listed = list(arguments)
    if not pays:
        return [task(*values) for values in listed]
    results: list[Any] = [None] * len(listed)

    def run(first: int, last: int) -> None:
        for n in range(first, last):
            results[n] = task(*listed[n])

    spread(len(listed), run, 1)
    return results


def each_block(
    kernel: Callable[..., None],
    size: int,
    *arguments: Any,
    block: int = BLOCK,
    fallback: Callable[..., None] | None = None,
) -> None:
    """kernel(first, last, *arguments) for the blocks [first, last) of range(size), or
    fallback(*arguments) once where `small` allows it."""
    if fallback is not None and small.allowance.covers(fallback, size, kernel=kernel):
        return fallback(*arguments)
    spread(size, lambda first, last: kernel(first, last, *arguments), block)


@with_default_fenv
def _work(job: list[Any]) -> None:
    """Runs the blocks that no other thread has taken, until one fails."""
    task, starts, size, block, failures = job
    _thread.inside = True
    try:
        while not failures and (start := next(starts)) < size:
            task(start, min(start + block, size))
    except BaseException as failure:
        failures.append(failure)
    finally:
        _thread.inside = False


@functools.cache
def _pool() -> futures.ThreadPoolExecutor:
    """The pool, whose threads start when first needed."""
    import numba

    return futures.ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS, "refkernels")


# A forked child has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def flat(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Flat, contiguous and read-only (one type to compile for). An array broadcast from one element
    becomes SPAN copies of it, or fewer where the array is shorter. See `step_of`."""
    if array.size > SPAN and not any(array.strides):
        array = array.reshape(-1)[:SPAN].copy()
    return whole(array)


def whole(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """As `flat`, with every element: of the array whose length is the number of elements."""
    return read_only(np.ascontiguousarray(array).reshape(-1))


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that cannot be written. To Numba it is another type: kernels compile for it alone."""
    view = array.view()
    view.setflags(write=False)
    return view
