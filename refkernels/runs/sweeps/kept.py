"""State that a process keeps between chunks: the framework's interpreter, and its own buffers.

Each thread has one session at a time. It is kept for the next chunk and closed after a while
without use, because the process that runs the chunks (such as a Dask worker) may outlive the sweep.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from refkernels.frameworks.gateway import Session
from refkernels.runs.sweeps.question import SweepQuestion

IDLE_SECONDS = 30.0
_this_thread = threading.local()


class _KeptSession:
    """A session and the timer that closes it."""

    def __init__(self, key: Any, session: Session) -> None:
        self.key = key
        self.session = session
        self.warm: set[Any] = set()
        self.lock = threading.Lock()
        self.timer: threading.Timer | None = None

    def leave(self) -> None:
        self.timer = threading.Timer(IDLE_SECONDS, self.close)
        self.timer.daemon = True
        self.timer.start()

    def close(self) -> None:
        with self.lock:
            self.session.close()


@contextlib.contextmanager
def taken(question: SweepQuestion) -> Iterator[Session]:
    """The session for a question, started on first use and kept for this thread's next question."""
    settings = dict(question.settings)
    key = (str(question.framework), tuple(sorted(settings.items())))
    current: _KeptSession | None = getattr(_this_thread, "session", None)
    if current is not None and current.timer is not None:
        current.timer.cancel()
    if current is not None and (current.key != key or current.session.status != "ok"):
        current.close()
        current = None
    if current is None:
        current = _this_thread.session = _KeptSession(
            key, Session(question.framework, settings, question.timeout)
        )
    with current.lock:
        try:
            yield current.session
        finally:
            current.leave()


def prepare(question: SweepQuestion) -> None:
    """Start the session for a question; a failure is reported when the question is asked."""
    with taken(question) as session:
        session.start()


def cold(kernel: Any) -> bool:
    """Whether this thread's session calls this kernel for the first time; remembers the call."""
    current: _KeptSession = _this_thread.session
    before = len(current.warm)
    current.warm.add(kernel)
    return len(current.warm) > before


def release() -> None:
    """Close this thread's session now."""
    current: _KeptSession | None = getattr(_this_thread, "session", None)
    if current is not None:
        if current.timer is not None:
            current.timer.cancel()
        current.close()
        _this_thread.session = None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Run the oracle on one thread: a sweep uses the cores through its workers."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


@dataclass(frozen=True)
class Room:
    """Buffers for one call: the block's inputs and hi, and lists as long as the call.

    `filled` counts the elements of the two lists; `previous` is the answer and hi of the input
    before a block.
    """

    x: Any
    hi: Any
    previous: Any
    listed: Any
    listed_hi: Any
    steps: Any
    filled: Any


def room(size: int, block: int) -> Room:
    """This thread's buffers, with lists for at least `size` elements."""
    buffers: Room | None = getattr(_this_thread, "room", None)
    if buffers is None or len(buffers.steps) < size or len(buffers.x) < block:
        buffers = _this_thread.room = Room(
            np.empty(block, np.uint32), np.empty(block), np.empty(2),
            np.empty(size + 1, np.int32), np.empty(size + 1), np.empty(size, np.int32),
            np.zeros(2, np.int64),
        )  # fmt: skip
    return buffers
