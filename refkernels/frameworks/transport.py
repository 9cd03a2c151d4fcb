"""Sends arrays to a worker and receives its answers: inline when small, else in mapped files.

A message is ``(dtype name, shape, "inline", bytes)`` or ``(dtype name, shape, "mapped", path,
offset)``; bfloat16 is sent as its uint16 bits.  The mapped files of one worker lie in one folder in
the system's shared memory.  The host owns and removes it, so a killed worker leaves nothing behind;
the folder of a killed host is removed by the next host.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.frameworks.locks import try_lock
from refkernels.records.words import DTYPES

Array = npt.NDArray[Any]
Message = tuple[Any, ...]

INLINE_BYTES = 1 << 16
ALIGNMENT = 64
PREFIX = "refkernels-"
MINIMAL_ROOM = 1 << 28


def pack(array: Array) -> tuple[str, Array]:
    """(dtype name, C-contiguous array of that dtype or of its bits); raise `TypeError`.  Integers
    and booleans are sent unchanged, bfloat16 and narrower floats as their bits."""
    array = np.asarray(array)
    name = array.dtype.name
    if array.dtype.itemsize == 1 and name not in ("bool", "int8", "uint8"):
        return name, np.asarray(array, order="C").view(np.uint8)
    if name not in DTYPES and array.dtype.kind not in "iub":
        raise TypeError(f"arrays of dtype {name} cannot be sent: give one of {', '.join(DTYPES)}")
    # Frameworks get dense arrays, whatever the strides were; a 0-d array stays 0-d.
    array = np.asarray(array, order="C")
    return name, array.view(np.uint16) if name == "bfloat16" else array


def unpack(name: str, bits: Array) -> Array:
    """The array that `pack` packed (dtypes other than bfloat16 are returned unchanged)."""
    if name != "bfloat16":
        return bits
    import ml_dtypes

    return bits.view(ml_dtypes.bfloat16)


def bits_dtype(name: str) -> np.dtype[Any]:
    return np.dtype("uint16" if name == "bfloat16" else name)


@dataclass(frozen=True)
class Window:
    """A file in shared memory, mapped on both sides for as long as the worker lives."""

    path: Path
    content: mmap.mmap

    def array(self, dtype: str, count: int) -> Array:
        """The first `count` elements, without a copy: the next sweep overwrites them."""
        return unpack(dtype, np.frombuffer(self.content, bits_dtype(dtype), count))


class Inline:
    """Sends every array in the message itself: for a worker on another machine."""

    path: Path | None = None

    def send(self, arrays: Mapping[str, Array]) -> dict[str, Message]:
        return {key: _inline(*pack(array)) for key, array in arrays.items()}

    def receive(self, messages: Mapping[str, Message]) -> dict[str, Array]:
        return {key: _from_inline(message) for key, message in messages.items()}

    def window(self, size: int) -> Window | None:
        """Memory into which the worker writes the answers of sweeps; None: they come inline."""
        return None

    def close(self) -> None:
        pass


class SharedFolder(Inline):
    """Sends large arrays in mapped files under one folder, which lives as long as its worker."""

    def __init__(self, parent: Path | None = None) -> None:
        self.path, lock = _new_folder(parent or _shared_memory() or Path(tempfile.gettempdir()))
        self._inputs: Path | None = None
        self._capacity = 0
        self._count = 0
        self._window: Window | None = None
        self._remove = weakref.finalize(self, _remove, self.path, lock)

    def close(self) -> None:
        """Remove the folder; also done at the end of the object or of the interpreter."""
        self._remove()

    def send(self, arrays: Mapping[str, Array]) -> dict[str, Message]:
        """Send the inputs of one run; they overwrite those of the previous run."""
        packed = {key: pack(array) for key, array in arrays.items()}
        large = {k: bits for k, (_, bits) in packed.items() if bits.nbytes > INLINE_BYTES}
        offsets, size = {}, 0
        for key, bits in large.items():
            offsets[key] = size
            size += -(-bits.nbytes // ALIGNMENT) * ALIGNMENT
        path = self._room_for(size) if size else None
        if path is None:
            return {key: _inline(*pair) for key, pair in packed.items()}
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
            for key, bits in large.items():
                np.frombuffer(view, bits.dtype, bits.size, offsets[key])[:] = bits.reshape(-1)
        return {
            key: (name, bits.shape, "mapped", str(path), offsets[key])
            if key in large
            else _inline(name, bits)
            for key, (name, bits) in packed.items()
        }

    def receive(self, messages: Mapping[str, Message]) -> dict[str, Array]:
        """The outputs of one run, copied from their file, which is then removed."""
        outputs, files = {}, set()
        for key, message in messages.items():
            if message[2] == "inline":
                outputs[key] = _from_inline(message)
                continue
            name, shape, _, path, offset = message
            count = int(np.prod(shape, dtype=np.int64))
            bits = np.fromfile(path, bits_dtype(name), count, offset=offset)
            outputs[key] = unpack(name, bits.reshape(shape))
            files.add(path)
        for path in files:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return outputs

    def _room_for(self, size: int) -> Path | None:
        """The file of the inputs with `size` bytes reserved; None without room for it.

        They are reserved because writing to a mapping without backing store ends the process.
        """
        if self._inputs is not None and size <= self._capacity:
            return self._inputs
        if self._inputs is not None:
            self._inputs.unlink(missing_ok=True)
        self._inputs = self._reserved("in", size)
        self._capacity = size if self._inputs is not None else 0
        return self._inputs

    def window(self, size: int) -> Window | None:
        """The one window of this worker, enlarged as needed; None without room for it."""
        if self._window is None or len(self._window.content) < size:
            path = self._reserved("window", size)
            if path is None:
                return None
            with path.open("r+b") as file:
                self._window = Window(path, mmap.mmap(file.fileno(), 0))
        return self._window

    def _reserved(self, name: str, size: int) -> Path | None:
        """A new file with `size` bytes reserved; None without room for it."""
        assert self.path is not None
        path = self.path / f"{name}-{self._count}"
        self._count += 1
        with path.open("wb") as file:
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.truncate(size)
            except OSError:
                path.unlink()
                return None
        return path


def _inline(name: str, bits: Array) -> Message:
    return (name, bits.shape, "inline", bits.tobytes())


def _from_inline(message: Message) -> Array:
    name, shape, _, content = message
    return unpack(name, np.frombuffer(content, bits_dtype(name)).reshape(shape).copy())


def _shared_memory() -> Path | None:
    """The system's shared-memory folder, if it has room (containers often have 64 MB)."""
    folder = Path("/dev/shm")
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return None
    return folder if shutil.disk_usage(folder).free >= MINIMAL_ROOM else None


def _new_folder(parent: Path) -> tuple[Path, int]:
    """A new folder, and the descriptor of the lock that shows that its host is alive."""
    _sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
    descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try_lock(descriptor)
    return folder, descriptor


def _remove(folder: Path, descriptor: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(descriptor)


def _sweep(parent: Path) -> None:
    """Remove the folders left by killed hosts of this user: those whose lock no process holds.

    It goes by locks because containers may share the folder without sharing process ids.
    """
    for lock in parent.glob(f"{PREFIX}*/lock"):
        with contextlib.suppress(OSError):
            # A younger folder may have been made but not locked yet.
            if time.time() - lock.stat().st_mtime < 10:
                continue
            descriptor = os.open(lock, os.O_RDWR)
            if try_lock(descriptor):
                shutil.rmtree(lock.parent, ignore_errors=True)
            os.close(descriptor)
