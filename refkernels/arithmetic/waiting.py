"""Messages for a user who waits for kernels: that they are being compiled, and why not just once.

Numba compiles a kernel when it is first called. That takes seconds for the larger ones, and where
the kernels can be kept it happens once for each machine and version of this package.
"""

import functools
import sys
import time
from pathlib import Path
from typing import Any

NOTICE_AFTER_S = 2.0  # seconds of compiling before a message


class Watch:
    """Counts this package's compiled kernels, and reports a long wait once."""

    def __init__(self) -> None:
        self.loaded = 0  # kernels that the imported modules define
        self.compiled = 0
        self.unwritable = ""
        self._depth = 0  # a kernel's compilation includes those that it calls
        self._began = 0.0
        self._waited = 0.0
        self._told = False
        self._warned = False

    def silence(self, silent: bool = True) -> None:
        """Reports no more waits: another part of the program does. `silent=False` ends this."""
        self._told = self._warned = silent

    def on_start(self, event: Any) -> None:
        if not _is_ours(event):
            return
        self._depth += 1
        if self._depth == 1:
            self._began = time.perf_counter()
            self._warn()
        self._tell()

    def on_end(self, event: Any) -> None:
        if not _is_ours(event):
            return
        self._depth -= 1
        self.compiled += 1
        self._tell()
        if self._depth == 0:
            self._waited += time.perf_counter() - self._began

    def _tell(self) -> None:
        if self._told or self._waited + time.perf_counter() - self._began < NOTICE_AFTER_S:
            return
        self._told = True
        how_often = (
            "each process does it again" if self.unwritable else "this happens once for a version"
        )
        _say(
            f"compiling kernels for this processor, {self.compiled} of at most {self.loaded} so "
            f"far; {how_often} (`refkernels warm` does it ahead)."
        )

    def _warn(self) -> None:
        if self.unwritable and not self._warned:
            self._warned = True
            _say(f"compiled kernels are not kept: {self.unwritable}.")


watch = Watch()


def unwritable(folder: Path, reason: str) -> None:
    """Notes that nothing can be kept in the folder; reported when a kernel is compiled."""
    if not watch.unwritable:
        watch.unwritable = (
            f"{folder} cannot be written ({reason}); set REFKERNELS_HOME to a folder that can"
        )


def _is_ours(event: Any) -> bool:
    function = getattr(event.data["dispatcher"], "py_func", None)
    return str(getattr(function, "__module__", "")).split(".")[0] == "refkernels"


def _say(sentence: str) -> None:
    if sys.stderr is not None:
        print(f"refkernels: {sentence}", file=sys.stderr, flush=True)


@functools.cache
def listen() -> None:
    """Lets Numba notify `watch` when it begins and when it ends compiling a kernel."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            watch.on_start(event)

        def on_end(self, event: Any) -> None:
            watch.on_end(event)

    event.register("numba:compile", Listener())
