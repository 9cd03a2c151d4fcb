"""The tensors of a captured step: a safetensors file, mapped and not loaded.

The file holds eight bytes of length, a JSON header, and the tensors' bytes. The header is checked
before any tensor is read: each span against its shape and dtype, all spans against the file's size
(they begin at 0, touch, and end with the file). Format: github.com/huggingface/safetensors,
"Format".
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
import numpy.typing as npt

from refkernels.records import codec
from refkernels.records.array_files import ArrayFileError, opened

Array = npt.NDArray[Any]
Item = TypeVar("Item")
Key = TypeVar("Key")

STORED_AS: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
_LONGEST_HEADER = 100_000_000  # the format's own limit


class CaptureError(ValueError):
    """A fault of a captured run, in one sentence that names the file."""


def json_of(text: str, where: str) -> Any:
    """The value of a JSON text; `where` names it in the CaptureError."""
    try:
        return codec.loads(text, depth=50)
    except ValueError as error:
        raise CaptureError(f"{where} is not JSON: {error}.") from None


def norm(array: Array) -> float:
    """The Euclidean norm in float64, of an array that is copied only for extreme numbers."""
    values = array.reshape(-1)
    square = float(np.einsum("i,i->", values, values, dtype=np.float64, casting="unsafe"))
    if not 2.0**-900 <= square < math.inf:  # squares overflow, or vanish
        return math.hypot(*values[values != 0].astype(np.float64).tolist())
    return math.sqrt(square)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by their keys, both in order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class TensorFile(Mapping[str, Array]):
    """The tensors of a safetensors file by name: read-only arrays on the mapped file.

    Iteration follows the header's order. `metadata`: the header's own strings; `alone`: without
    tensors that are in an earlier step's file. Raises CaptureError for a file that contradicts its
    header.
    """

    def __init__(self, path: str | os.PathLike[str], alone: bool = False) -> None:
        self.path = Path(path)
        try:
            with opened(self.path) as file:
                empty = not os.fstat(file.fileno()).st_size
                content = np.empty(0, np.uint8) if empty else np.memmap(file, np.uint8, "r")
        except (ArrayFileError, OSError) as error:
            raise CaptureError(str(error)) from None
        length = int.from_bytes(content[:8].tobytes(), "little")
        if not 2 <= length <= min(_LONGEST_HEADER, content.size - 8):
            raise self._error("its header's length does not fit the file")
        text = content[8 : 8 + length].tobytes().decode("utf-8", "replace")
        header = json_of(text, f"{self.path}: its header")
        if not isinstance(header, dict):
            raise self._error("its header is not a JSON object")
        metadata = header.pop("__metadata__", {})
        words = metadata.values() if isinstance(metadata, dict) else [None]
        if not all(isinstance(word, str) for word in words):
            raise self._error("its __metadata__ is not a mapping of strings to strings")
        self.metadata: dict[str, str] = metadata
        self._content: dict[str, Array] = {}  # bytes
        self._forms: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        entries = {name: self._described(name, entry) for name, entry in header.items()}
        spans = sorted(span for _, _, span in entries.values())
        ends = [0, *(end for _, end in spans)]
        if ends != [*(begin for begin, _ in spans), content.size - 8 - length]:
            raise self._error("its tensors do not fill it, one behind the other")
        for name, (dtype, shape, (begin, end)) in entries.items():
            self._add(name, dtype, shape, content[8 + length :][begin:end])
        self._repeat(json_of(metadata.get("repeated", "{}"), f"{self.path}: repeated"), alone)

    def _error(self, reason: str) -> CaptureError:
        return CaptureError(f"{self.path} is not a whole safetensors file: {reason}.")

    def _described(self, name: str, entry: Any) -> tuple[np.dtype[Any], list[int], list[int]]:
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise self._error(f"{name!r} is not described by dtype, shape and data_offsets")
        dtype = STORED_AS.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
        if dtype is None:
            raise self._error(f"{name!r} has the unknown dtype {entry['dtype']!r}")
        shape, span = entry["shape"], entry["data_offsets"]
        if not _are_counts(shape) or not _are_counts(span) or len(span) != 2 or len(shape) > 32:
            raise self._error(f"{name!r} has a shape or offsets that are not whole numbers")
        return dtype, shape, span

    def _add(self, name: str, dtype: np.dtype[Any], shape: list[int], content: Array) -> None:
        if content.size != math.prod(shape) * dtype.itemsize:
            raise self._error(f"{name!r} has {content.size:,} bytes, but not that shape")
        self._forms[name], self._content[name] = (dtype, tuple(shape)), content

    def _repeat(self, repeated: Any, alone: bool) -> None:
        """Tensors with the bytes of another one, which this file holds once, or that of an earlier
        step."""
        files: dict[tuple[int, ...], TensorFile] = {(): self}
        for name, place in repeated.items() if isinstance(repeated, dict) else ():
            parts: list[Any] = place if isinstance(place, list) else []
            of, shape, *step = parts if len(parts) in (2, 3) else list[Any](("", 0))
            if not _are_counts(step) or not _are_counts(shape) or name in self:
                raise self._error(f"{name!r} does not repeat one of its tensors")
            if step and alone:
                continue
            if tuple(step) not in files:
                path = self.path.with_name(f"step_{step[0]:06d}.safetensors")
                files[tuple(step)] = TensorFile(path, alone=True)
            file = files[tuple(step)]
            if of not in file:
                raise self._error(f"{name!r} does not repeat one of its tensors")
            self._add(name, file._forms[of][0], shape, file._content[of])

    def __getitem__(self, name: str) -> Array:
        (dtype, shape), content = self._forms[name], self._content[name]
        if not content.size:
            return np.empty(shape, dtype)
        if dtype == np.bool_ and content.max() > 1:
            raise self._error(f"{name!r} is boolean and holds {content.max()}")
        return content.view(dtype).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._forms)

    def __len__(self) -> int:
        return len(self._forms)


def _are_counts(value: Any) -> bool:
    """Whether a value is a list of whole numbers from 0."""
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value
    )
