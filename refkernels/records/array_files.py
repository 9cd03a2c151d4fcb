"""Reads arrays from untrusted .npy and .npz files, with every check before memory is allocated.

Only regular files are opened (no device, no pipe). Nothing is unpickled. A header is matched by a
pattern, not evaluated, and the size it promises (shape times item size) is compared with a limit
and with the bytes that follow. An error is one sentence. bfloat16 is stored as ml_dtypes saves it:
two bytes of NumPy's kind V. Format: NumPy Enhancement Proposal 1.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from refkernels.arguments import as_path

MOST_BYTES = 2 * 2**30  # of one array, and of all arrays of an archive
MOST_ARRAYS = 1000  # in an archive
_LONGEST_HEADER = 10_000  # NumPy's own limit
_PIECE = 1 << 20
_MAGIC = b"\x93NUMPY"
_SIZES = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}  # of the header's length, by version
_VALUE = r"'[^'\\]*'|True|False|\([0-9L, ]*\)"
_HEADER = re.compile(rf"\s*\{{(?:\s*'\w+'\s*:\s*(?:{_VALUE})\s*(?:,|(?=\}})))*\s*\}}\s*")
_ENTRY = re.compile(rf"'(\w+)'\s*:\s*({_VALUE})")
_SHAPE = re.compile(r"\((?:\d{1,19}L?, ?)*(?:\d{1,19}L?)?\)")
_DESCR = re.compile(r"[<>|=]?[A-Za-z?]\d{0,4}")
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, NotImplementedError,
    RuntimeError, ValueError, OverflowError, IndexError,
)  # fmt: skip

Array = npt.NDArray[Any]


class ArrayFileError(ValueError):
    """What is wrong with a file of arrays, in one sentence that names the file."""


def load_npy(path: str | os.PathLike[str]) -> Array:
    """The array of a .npy file: writable, in native byte order. Raises ArrayFileError."""
    path = _path(path)
    with opened(path) as file:
        return read_array(file, path.name)


def load_npz(path: str | os.PathLike[str]) -> dict[str, Array]:
    """All arrays of a .npz file by name. Raises ArrayFileError."""
    with opened_npz(path) as archive:
        return {name: archive.read(name) for name in archive.names}


@contextlib.contextmanager
def opened_npz(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """A .npz file whose arrays are read one by one. Raises ArrayFileError."""
    path = _path(path)
    name = path.name
    with opened(path) as file:
        with _errors_naming(name):
            archive = zipfile.ZipFile(file)
        with archive:
            yield Archive(name, archive)


class Archive:
    """An open .npz file: the `names` of its arrays, and `read` for each."""

    def __init__(self, name: str, archive: zipfile.ZipFile) -> None:
        self._name, self._archive = name, archive
        members = archive.infolist()
        if len(members) > MOST_ARRAYS:
            raise self._error(f"it holds {len(members):,} files, more than {MOST_ARRAYS:,}.")
        if foreign := [file.filename for file in members if not file.filename.endswith(".npy")]:
            raise self._error(f"it holds {foreign[0]!r}, which is not an array.")
        self.names = tuple(file.filename.removesuffix(".npy") for file in members)
        if len(set(self.names)) < len(self.names):
            raise self._error("it holds an array twice.")
        size = sum(file.file_size for file in members)
        if size > MOST_BYTES:
            raise self._error(f"it would unpack to {size:,} bytes, more than {MOST_BYTES:,}.")

    def read(self, name: str, most_bytes: int = MOST_BYTES) -> Array:
        """One array of at most `most_bytes` bytes."""
        with _errors_naming(self._name), self._archive.open(f"{name}.npy") as file:
            return read_array(file, f"{self._name}: {name}", most_bytes)

    def _error(self, sentence: str) -> ArrayFileError:
        return ArrayFileError(f"{self._name}: {sentence}")


def _path(path: Any) -> Path:
    checked = as_path(path, "path")
    if not str(checked).isprintable():
        raise ArrayFileError(f"{str(checked)!r} has unprintable characters: rename the file.")
    return checked


@contextlib.contextmanager
def _errors_naming(name: str) -> Iterator[None]:
    """Turns errors of `zipfile` and its decompressors into one sentence."""
    try:
        yield
    except ArrayFileError:
        raise
    except zipfile.BadZipFile:
        raise ArrayFileError(
            f"{name} is not a .npz file, or is truncated: save it again."
        ) from None
    except _DAMAGE as error:
        damage = str(error).rstrip(".") or type(error).__name__
        raise ArrayFileError(f"{name} is damaged ({damage}): save it again.") from None


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A regular file, open to read bytes. Raises ArrayFileError for any other path."""
    try:
        mode = os.stat(path).st_mode
        file = open(path, "rb") if stat.S_ISREG(mode) else None  # noqa: SIM115
    except FileNotFoundError:
        raise ArrayFileError(f"There is no file {path}.") from None
    except OSError as error:
        raise ArrayFileError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError:  # a path with a null character
        raise ArrayFileError(f"{str(path)!r} is not a path.") from None
    if stat.S_ISDIR(mode):
        raise ArrayFileError(f"{path} is a folder: name a file in it.")
    if file is None:
        raise ArrayFileError(f"{path} is a device, pipe or socket: save the array to a file.")
    with file:
        yield file


def read_array(file: Any, name: str, most_bytes: int = MOST_BYTES) -> Array:
    """The array in an open .npy file that holds nothing else; `name` is its name in errors."""
    shape, dtype, order = _header(file, name)
    size = math.prod(shape) * dtype.itemsize
    if size > most_bytes:
        raise ArrayFileError(f"{name} promises {size:,} bytes, more than {most_bytes:,}.")
    content = _content(file, size)
    if len(content) != size:
        more = "more" if len(content) > size else "fewer"
        raise ArrayFileError(f"{name} holds {more} bytes than its shape {shape} needs.")
    try:
        flat = np.frombuffer(content, dtype) if size else np.empty(0, dtype)
        array = flat.reshape(shape, order=order)
    except ValueError:  # too many axes; or no elements, and yet an axis of 10^18
        raise ArrayFileError(f"{name} has the impossible shape {shape}.") from None
    return _native(array)


def _header(file: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any], Literal["C", "F"]]:
    start = file.read(8)
    if start[:2] == b"PK":
        raise ArrayFileError(f"{name} is an archive where one array is expected: give a .npy file.")
    size = _SIZES.get(tuple(start[6:8]))
    if start[:6] != _MAGIC or size is None:
        raise ArrayFileError(f"{name} is not a .npy file of numbers: it does not begin like one.")
    stored = file.read(struct.calcsize(size))
    length = struct.unpack(size, stored)[0] if len(stored) == struct.calcsize(size) else 0
    if length > _LONGEST_HEADER:
        raise ArrayFileError(
            f"{name} has a header of {length:,} bytes, more than {_LONGEST_HEADER:,}."
        )
    text = file.read(length).decode("utf-8", "replace")
    if not _HEADER.fullmatch(text):
        structured = re.match(r"\s*\{\s*'descr'\s*:\s*\[", text)
        fault = "it holds records" if structured else "its header cannot be read"
        raise ArrayFileError(f"{name} is not a .npy file of numbers: {fault}.")
    entries = dict(_ENTRY.findall(text))
    shape, fortran = entries.get("shape", ""), entries.get("fortran_order")
    if not _SHAPE.fullmatch(shape) or fortran not in ("True", "False"):
        raise ArrayFileError(f"{name} is not a .npy file of numbers: its header cannot be read.")
    lengths = tuple(int(digits) for digits in re.findall(r"\d+", shape))
    return lengths, _dtype(entries.get("descr", ""), name), "F" if fortran == "True" else "C"


def _dtype(text: str, name: str) -> np.dtype[Any]:
    """A dtype of numbers: bool, integer, float, complex, or the two bytes of a bfloat16."""
    described = text.strip("'")
    try:
        dtype = np.dtype(described) if _DESCR.fullmatch(described) else None
    except TypeError:
        dtype = None
    if dtype is None:
        raise ArrayFileError(f"{name} has the dtype {described[:40]!r}, which holds no numbers.")
    if dtype.hasobject:
        raise ArrayFileError(
            f"{name}: it holds Python objects (pickle), which are never read: save numbers instead."
        )
    if dtype.kind not in "biufc" and dtype != np.dtype("V2"):
        cure = ": save float8 as float32, which holds it" if dtype == np.dtype("V1") else ""
        raise ArrayFileError(f"{name} is not a .npy file of numbers: it has dtype {dtype}{cure}.")
    return dtype


def _content(file: Any, size: int) -> bytearray:
    """The bytes that follow, at most one more than promised: a promise alone allocates nothing."""
    content = bytearray()
    while len(content) <= size and (piece := file.read(min(_PIECE, size + 1 - len(content)))):
        content += piece
    return content


def _native(array: Array) -> Array:
    if array.dtype == np.dtype("V2"):
        import ml_dtypes

        return array.view(ml_dtypes.bfloat16)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
