"""Files that exist whole or not at all, and files that are kept compressed."""

import contextlib
import gzip
import os
import threading
import zlib
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


def compressed(path: Path) -> Path:
    """The gzip file that stands for `path` if `path` is not there: records.jsonl.gz."""
    return path.with_name(f"{path.name}.gz")


def exists(path: Path) -> bool:
    """Whether the file is there, as it is or compressed."""
    return os.path.exists(path) or os.path.exists(compressed(path))


def stored(path: Path) -> Path:
    """The file that is there: `path`, or the gzip file that stands for it; `path` for neither."""
    # Unlike Path.exists, these raise nothing for a name that no file can have.
    return compressed(path) if not os.path.exists(path) and exists(path) else path


def read_whole(path: Path) -> bytes:
    """The content of a file, or of the gzip file that stands for it, decompressed.

    Raises FileNotFoundError if neither is there, ValueError for a gzip file that is cut off or
    damaged.
    """
    file = stored(path)
    content = file.read_bytes()
    if file.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{file} is cut off or damaged ({error}).") from None


def compress(path: Path) -> Path:
    """Replace `path` by its gzip file; equal contents give equal files."""
    write_whole(compressed(path), gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()
    return compressed(path)
