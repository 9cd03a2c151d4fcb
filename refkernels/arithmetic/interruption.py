"""Ctrl-C comes after a step that it must not interrupt.

Numba and LLVM call back into Python while they compile a kernel or read it from disk. An exception
has no way out of such a callback: it is printed and dropped, the kernel remains half-built, and the
next access to it can end the process with a segmentation fault (seen once in a hundred runs of
`measure` that were stopped while they read their kernels).
"""

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Later:
    """A handler of SIGINT that only notes that it came."""

    def __init__(self) -> None:
        self.came: tuple[int, FrameType | None] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = number, frame


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Hold a Ctrl-C back until the block has ended, and then pass it to the handler in force.

    Python handles signals in the main thread; blocks in other threads are never interrupted. A
    handler that is not a Python function stays.
    """
    handler = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or isinstance(handler, _Later) or not callable(handler):
        yield
        return
    later = _Later()
    signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if later.came is not None:
            handler(*later.came)


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, with every call in a block of `deferred`."""

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        with deferred():
            return function(*arguments, **named)

    return call
