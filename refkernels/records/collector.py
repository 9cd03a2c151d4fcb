"""Records are read without Python's garbage collector."""

import contextlib
import gc
from collections.abc import Iterator

_MANY = 2000  # records through which a search for garbage takes long


@contextlib.contextmanager
def without_collector(records: int) -> Iterator[None]:
    """Pauses the garbage collector. Its searches for cycles take as long as reading: they walk all
    records again and again, although a record has no cycles. At the end, if there are many
    `records`, every object moves to the oldest generation, so that the next search skips them
    too."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if records > _MANY and not gc.get_freeze_count():  # what a caller has frozen stays frozen
            gc.freeze()
            gc.unfreeze()
        if enabled:
            gc.enable()
