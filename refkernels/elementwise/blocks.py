"""Blocks of an array, worked on by as many threads as Numba may use.

The kernels release the GIL and touch their own block only, so that nothing depends on the number
of threads or on who takes which block. Threads of ours instead of `prange`: one kernel per
function serves sweeps, blocks and refinement alike, and Python code between two kernels can run in
the block while it is in the cache.
"""

import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numba

from refkernels.arithmetic.mode import in_default_mode

BLOCK = 1 << 15  # elements: input and a few columns stay in the second-level cache
_thread = threading.local()  # .inside: whether it is at a task


def spread(size: int, task: Callable[[int, int], None], block: int = BLOCK) -> None:
    """task(start, stop) for all blocks of range(size), each once, in any order.

    Raises what a task raises. Called by a task it works on the task's thread alone: the helpers
    are at work, and might wait for one another.
    """
    starts = itertools.count(0, block)  # one step of it is atomic
    helpers = 0
    if size > block and not getattr(_thread, "inside", False):
        helpers = min(numba.get_num_threads(), -(-size // block)) - 1
    running = [_pool(helpers).submit(_work, task, starts, size, block) for _ in range(helpers)]
    _work(task, starts, size, block)
    for future in running:
        future.result()


@in_default_mode
def _work(task: Callable[[int, int], None], starts: Iterator[int], size: int, block: int) -> None:
    """The blocks that no other thread has taken."""
    before = getattr(_thread, "inside", False)
    _thread.inside = True
    try:
        for start in starts:
            if start >= size:
                break
            task(start, min(start + block, size))
    finally:
        _thread.inside = before


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="refkernels")


# A forked child has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
