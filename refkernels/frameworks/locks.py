"""A lock on an open file, which the system releases however its holder ends."""

from __future__ import annotations

import os


def try_lock(descriptor: int) -> bool:
    """Take the exclusive lock of an open file; False where another process holds it."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
