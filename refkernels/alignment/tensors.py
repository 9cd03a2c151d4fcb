"""The tensors of a captured step: a safetensors file, mapped and not loaded.

The file holds eight bytes of length, a JSON header, and the tensors' bytes. The header is checked
before any tensor is read: each span against its shape and dtype, all spans against the file's size
(they begin at 0, touch, and end with the file). Format: github.com/huggingface/safetensors,
"Format".
"""

from __future__ import annotations

import json
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
from refkernels.records.checks import Schema

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
_MOST_AXES = 32  # of NumPy before 2.0
_PLACES = [str, list], [str, list, int]  # of a tensor that repeats another
_TEXT = Path(__file__).with_name("capture.json").read_text("utf-8")
_SCHEMA = Schema(json.loads(_TEXT), {})


class CaptureError(ValueError):
    """A fault of a captured run, in one sentence that names the file."""


def json_of(text: str, where: str, rule: str) -> Any:
    """The value of a JSON text that obeys a rule of capture.json; `where` names it in the
    CaptureError."""
    try:
        value = codec.loads(text, depth=50)
    except ValueError as error:
        raise CaptureError(f"{where} is not JSON: {error}.") from None
    if complaint := _SCHEMA.complaint(_SCHEMA.rule(rule), value):
        name, _, said = complaint.rpartition(".")
        raise CaptureError(f"{where}: {name or 'it'} {said}.")
    return value


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
        header = json_of(text, f"{self.path}: its header", "header")
        self.metadata: dict[str, str] = header.pop("__metadata__", None) or {}
        self._content: dict[str, Array] = {}  # bytes
        self._forms: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        spans = sorted(entry["data_offsets"] for entry in header.values())
        ends = [0, *(end for _, end in spans)]
        if ends != [*(begin for begin, _ in spans), content.size - 8 - length]:
            raise self._error("its tensors do not fill it, one behind the other")
        for name, entry in header.items():
            span = slice(*entry["data_offsets"])
            self._add(name, STORED_AS[entry["dtype"]], entry["shape"], content[8 + length :][span])
        repeated = self.metadata.get("repeated", "{}")
        self._repeat(json_of(repeated, f"{self.path}: repeated", "repeated"), alone)

    def _error(self, reason: str) -> CaptureError:
        return CaptureError(f"{self.path} is not a whole safetensors file: {reason}.")

    def _add(self, name: str, dtype: np.dtype[Any], shape: list[int], content: Array) -> None:
        if content.size != math.prod(shape) * dtype.itemsize or len(shape) > _MOST_AXES:
            raise self._error(f"{name!r} has {content.size:,} bytes, but not that shape")
        self._forms[name], self._content[name] = (dtype, tuple(shape)), content

    def _repeat(self, repeated: dict[str, Any], alone: bool) -> None:
        """Tensors with the bytes of another one, which this file holds once, or that of an earlier
        step."""
        files: dict[tuple[int, ...], TensorFile] = {(): self}
        for name, place in repeated.items():
            if [*map(type, place)] not in _PLACES or name in self:
                raise self._error(f"{name!r} does not repeat one of its tensors")
            of, shape, *step = place
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
