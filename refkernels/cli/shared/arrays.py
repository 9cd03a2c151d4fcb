"""Reads the arrays that --input and --output name.

    x=x.npy                 a .npy file
    x=case.npz:x            an array of a .npz file; x=case.npz if it holds only one
    case.npz                all of its arrays, by their names
    x=model.pt:layer.x      a tensor of a file of torch.save; x=x.pt and x.pt as for .npz

.pt files are read in torch's own interpreter with weights_only; nothing is unpickled here.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy.typing as npt

from refkernels.records import array_files

FORMS = ("NAME=FILE.npy", "NAME=FILE.npz:ARRAY", "FILE.npz")
Array = npt.NDArray[Any]
Tensors = Callable[[str, str | None], Mapping[str, Array]]
"""Reads a .pt file: (path, key) -> the tensor of that key, under its name; "" means the only
tensor, None means all."""
_NAMED = re.compile(r"((?:.*?:)?[^:=@]+)=(?!=)(.+)", re.DOTALL)
_ARCHIVE = re.compile(r"(.*?\.(npz|pth?))(?::(.+))?", re.DOTALL)


def read_inputs(texts: list[str], tensors: Tensors) -> dict[str, Array]:
    """The arrays of all --input options by name. Raises ValueError (one sentence)."""
    arrays: dict[str, Array] = {}
    for text in texts:
        name, place = _split(text)
        if name is None and not _ARCHIVE.fullmatch(place):
            raise ValueError(f"--input {text!r} is not one of {', '.join(FORMS)}.")
        _add(arrays, "--input", _read(name, place, tensors))
    return arrays


def read_outputs(texts: list[str], tensors: Tensors) -> dict[str, dict[str, Array]]:
    """The arrays of all --output options by kernel and name. Raises ValueError (one sentence)."""
    kernels: dict[str, dict[str, Array]] = {}
    for text in texts:
        name, place = _split(text)
        if name is not None:
            kernel, _, name = name.rpartition(":")
        else:
            kernel, _, place = ("", "", text) if os.path.exists(text) else text.rpartition(":")
        if name == "" or (name is None and not _ARCHIVE.fullmatch(place)):
            forms = ", ".join(f"KERNEL:{form}" for form in FORMS)
            raise ValueError(f"--output {text!r} is not one of {forms}.")
        _add(kernels.setdefault(kernel or "kernel", {}), "--output", _read(name, place, tensors))
    return kernels


def _split(text: str) -> tuple[str | None, str]:
    """(NAME, FILE), or (None, FILE) without a name. The name may be KERNEL:OUTPUT, and the kernel a
    target: torch==1.9.0@OMP_NUM_THREADS=1:y=FILE."""
    parts = _NAMED.fullmatch(text)
    return (parts[1], parts[2]) if parts else (None, text)


def _add(arrays: dict[str, Array], option: str, new_arrays: Mapping[str, Array]) -> None:
    if repeated := [name for name in new_arrays if name in arrays]:
        raise ValueError(f"{option} gives {repeated[0]!r} twice: leave one of them out.")
    arrays.update(new_arrays)


def _read(name: str | None, place: str, tensors: Tensors) -> dict[str, Array]:
    """One array under its name, or all arrays of a file."""
    parts = _ARCHIVE.fullmatch(place)
    if parts is None or (place.endswith(".npy") and os.path.exists(place)):
        assert name is not None
        return {name: array_files.load_npy(place)}
    path, kind, key = parts.groups()
    read = _arrays if kind == "npz" else tensors
    if name is None:
        if key is not None:
            raise ValueError(f"{place!r} has no name here: write NAME={place}.")
        return dict(read(path, None))
    (array,) = read(path, key or "").values()
    return {name: array}


def _arrays(path: str, key: str | None) -> dict[str, Array]:
    """`Tensors` for a .npz file."""
    from refkernels.suggestion import did_you_mean

    with array_files.opened_npz(path) as archive:
        names = list(archive.names)
        if "meta" in names and any(name.startswith("input.") for name in names):
            raise ValueError(f"{path} is a case file: give it in OP's place.")
        if key is None:
            return {name: archive.read(name) for name in names}
        if not names:
            raise ValueError(f"{path} holds no arrays.")
        if not key:
            if len(names) > 1:
                listed = ", ".join(names)
                raise ValueError(f"{path} holds several arrays ({listed}): write {path}:ARRAY.")
            key = names[0]
        if key not in names:
            raise ValueError(f"{path} has no array {key!r}: {did_you_mean(key, names, 'it has')}.")
        return {key: archive.read(key)}


@contextlib.contextmanager
def tensors_of_torch(framework: str, timeout: float) -> Iterator[Tensors]:
    """`Tensors` that asks the torch of that name, whose interpreter starts with the first file."""
    from refkernels.frameworks.catalog import FrameworkError
    from refkernels.frameworks.gateway import Session

    def read(path: str, key: str | None) -> Mapping[str, Array]:
        with array_files.opened(path):
            pass  # a file that is not regular is refused as for the other kinds
        reply = session.load(path, key)
        if not reply.ok:
            raise FrameworkError(str(reply.reason))
        return reply.outputs

    with contextlib.closing(Session(framework, timeout=timeout)) as session:
        yield read
