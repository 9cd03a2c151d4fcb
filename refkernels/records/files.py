"""Files that exist whole or not at all."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to it at the end: readers see the old file or the new
    one, never a part."""
    place = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield place
        place.replace(path)
    finally:
        with contextlib.suppress(OSError):  # an earlier error matters more
            place.unlink()


def write_whole(path: Path, content: bytes | str) -> Path:
    """Write a file, text as UTF-8, and make its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with aside(path) as place:
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
