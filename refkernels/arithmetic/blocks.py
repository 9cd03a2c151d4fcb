"""Kernels over flat arrays, in blocks, on the threads that Numba may use.

The blocks are Python threads' work, for kernels compiled with nogil=True: unlike Numba's parallel
loops they may be started from several threads at once under every threading layer, and one compiled
kernel serves small arrays and large ones. A kernel writes into its own places only, so nothing
depends on which thread took which block, or on how many there are.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import small
from refkernels.arithmetic.mode import in_default_mode

SPAN = 1024
"""Elements that a kernel's inner loop takes at a time: its scratch stays in the L1 cache."""
BLOCK = 64 * SPAN
"""Elements that a thread takes at a time: far more work than the cost of asking for the next."""


def each_block(
    kernel: Callable[..., None],
    size: int,
    *arguments: Any,
    block: int = BLOCK,
    twin: Callable[..., None] | None = None,
) -> None:
    """kernel(first, last, *arguments) for the blocks [first, last) of range(size), or its twin's
    twin(*arguments) for the whole, where that is `small`."""
    if twin is not None and small.allowance.covers(twin, size, kernel=kernel):
        return twin(*arguments)
    starts = itertools.count(0, block)  # its next() is atomic
    failures: list[BaseException] = []
    task = kernel, arguments, starts, block, size, failures
    helpers = []
    if size > block:  # fewer threads than blocks, so that each start is paid back
        threads = min(numba.get_num_threads(), -(-size // block))
        helpers = [
            threading.Thread(target=_work, args=task, daemon=True) for _ in range(threads - 1)
        ]
    for helper in helpers:
        helper.start()
    _work(*task)
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]


@in_default_mode
def _work(
    kernel: Callable[..., None],
    arguments: tuple[Any, ...],
    starts: Iterator[int],
    block: int,
    size: int,
    failures: list[BaseException],
) -> None:
    """The blocks that no other thread has taken, until one fails."""
    try:
        while not failures and (first := next(starts)) < size:
            kernel(first, min(first + block, size), *arguments)
    except BaseException as failure:
        failures.append(failure)


def flat(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Flat, contiguous and read-only (one type to compile for); the broadcast of one element is
    given as SPAN copies of it, and as fewer where the array is shorter. See `step_of`."""
    if array.size > SPAN and not any(array.strides):
        return read_only(np.full(SPAN, array.reshape(-1)[0], array.dtype))
    return read_only(np.ascontiguousarray(array).reshape(-1))


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that cannot be written: to Numba another type, so one is compiled for, not both."""
    view = array.view()
    view.flags.writeable = False
    return view
