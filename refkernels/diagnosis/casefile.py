"""Case files: a question and kernels' answers, in one .npz without pickle.

input.x, input.weight, ...      the inputs by the names of the op's signature
output.torch.y, ...             each kernel's answers
meta                            JSON as UTF-8 bytes: schema, op, direction, params, dtypes (of every
                                array: bfloat16 and float8 are stored as their bits), environment
                                (by kernel), reported (the thread's figures), source (where)

A file is untrusted: it is checked before any array is read, and an error is one sentence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import refkernels
from refkernels import registry
from refkernels.arguments import as_mapping, as_path
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import LOW, as_float_array
from refkernels.diagnosis.explain import explain
from refkernels.diagnosis.explanation import Explanation
from refkernels.op import DIRECTIONS, DTYPES, Direction
from refkernels.records import array_files, codec
from refkernels.records.files import aside
from refkernels.records.parameters import check_parameter
from refkernels.records.words import SCHEMA

_META_BYTES = 2**24
_META_DEPTH = 12
Array = npt.NDArray[Any]


class CaseFileError(ValueError):
    """A case file that cannot be used; one sentence names it and what is wrong with it."""


@dataclass(frozen=True)
class CaseFile:
    """The arguments of `explain`, and their source. `outputs`: by kernel, then by name."""

    op: str
    direction: Direction
    inputs: dict[str, Array]
    outputs: dict[str, dict[str, Array]]
    params: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, dict[str, Any]] = field(default_factory=dict)
    reported: Any = None
    source: str | None = None

    def explain(self) -> Explanation:
        """`refkernels.explain` of the case, with environment, report and source in its evidence."""
        explanation = explain(self.op, self.inputs, self.outputs, self.params, self.direction)
        origin = {
            "refkernels": refkernels.__version__,
            "environment": self.environment,
            "reported": self.reported,
            "source": self.source,
        }
        recorded = {name: value for name, value in origin.items() if value}
        return replace(explanation, evidence={**explanation.evidence, **recorded})


def save(path: str | os.PathLike[str], case: CaseFile) -> Path:
    """Writes a case to a temporary file and renames it. Raises CaseFileError for a kernel's name
    that is empty or has a '/', and for anything that `load` would refuse; TypeError for an array
    that is not of floats, and for params or an environment that are not mappings by name; OSError
    if writing fails."""
    if not isinstance(case, CaseFile):
        raise TypeError(f"case is of type {type(case).__name__}, but it must be a CaseFile.")
    target = as_path(path, "path")
    if not target.name:
        raise CaseFileError("A case file needs a name: the path has none.")
    op = registry.get(case.op)
    arrays = {f"input.{name}": op.array(name, array) for name, array in case.inputs.items()}
    for kernel, outputs in case.outputs.items():
        for name, array in outputs.items():
            arrays[f"output.{kernel}.{name}"] = as_float_array(array, name)
    if unusable := [kernel for kernel in case.outputs if not kernel or "/" in kernel]:
        raise CaseFileError(f"A kernel cannot be called {unusable[0]!r}: use a name without '/'.")
    meta = {
        "schema": SCHEMA,
        "kind": "case",
        "op": case.op,
        "direction": case.direction,
        "params": as_mapping(case.params, "params"),
        "dtypes": {key: array.dtype.name for key, array in arrays.items()},
        "environment": as_mapping(case.environment, "environment"),
        "reported": case.reported,
        "source": case.source,
    }
    encoded = _encoded(meta)
    stored: dict[str, Any] = {key: _stored(array) for key, array in arrays.items()}
    target.parent.mkdir(parents=True, exist_ok=True)
    with aside(target) as temporary:
        with temporary.open("wb") as file:
            np.savez_compressed(file, meta=np.frombuffer(encoded, np.uint8), **stored)
        with array_files.opened_npz(temporary) as archive:
            _Reader(target.name, archive).meta()
    return target


def _encoded(meta: dict[str, Any]) -> bytes:
    """The meta as JSON, with NumPy's numbers converted to Python's, and its arrays to lists."""
    plain = lambda value: value.tolist() if np.ndim(value) else codec.figure(value)  # noqa: E731
    try:
        return json.dumps(meta, ensure_ascii=False, allow_nan=False, default=plain).encode()
    except (TypeError, ValueError, RecursionError) as failure:
        raise CaseFileError(
            f"The params, the environment or the report cannot be written as JSON: {failure}."
        ) from None


def load(path: str | os.PathLike[str], oracle: str | None = None) -> CaseFile:
    """Reads a case. `oracle`: FILE.py:NAME, which the case is about, where it is no op of ours.
    Raises CaseFileError with one sentence about what is wrong with the file."""
    try:
        with array_files.opened_npz(path) as archive:
            reader = _Reader(as_path(path, "path").name, archive, oracle)
            case = reader.case()
            if oracle is not None and (own := registry.get(oracle, case.inputs).name) != case.op:
                raise reader.wrong(f"its op is {case.op!r}, and {oracle} is {own!r}.")
            return case
    except array_files.ArrayFileError as error:
        raise CaseFileError(str(error)) from None


def _stored(array: Array) -> Array:
    """The array in a dtype of NumPy's own: bfloat16 and float8 as their bits."""
    plain = np.ascontiguousarray(array).reshape(array.shape)
    foreign = array.dtype.name == "bfloat16" or array.dtype in LOW - {np.dtype(np.int8)}
    return plain.view(f"u{array.dtype.itemsize}") if foreign else plain


class _Reader:
    """Reads one open archive, and checks its contents."""

    def __init__(self, name: str, archive: array_files.Archive, oracle: str | None = None) -> None:
        self.name, self.archive, self.oracle = name, archive, oracle
        if unreadable := [key for key in archive.names if not key.isprintable()]:
            raise self.wrong(f"{unreadable[0]!r} is not the name of an array.")

    def wrong(self, sentence: str) -> CaseFileError:
        return CaseFileError(f"{self.name}: {sentence}")

    def case(self) -> CaseFile:
        meta = self.meta()
        arrays = {
            key: self.array(key, meta["dtypes"]) for key in self.archive.names if key != "meta"
        }
        inputs = {key[6:]: array for key, array in arrays.items() if key.startswith("input.")}
        outputs: dict[str, dict[str, Array]] = {}
        for key, array in arrays.items():
            if key.startswith("output."):
                kernel, dot, name = key[7:].rpartition(".")
                if not (kernel and dot and name):
                    raise self.wrong(f"{key} is not output.KERNEL.NAME.")
                outputs.setdefault(kernel, {})[name] = array
            elif not key.startswith("input."):
                raise self.wrong(f"{key} is neither input.NAME nor output.KERNEL.NAME.")
        if not inputs:
            raise self.wrong("it has no inputs (arrays input.NAME).")
        if not outputs:
            raise self.wrong("it has no outputs (arrays output.KERNEL.NAME).")
        return CaseFile(
            meta["op"], meta["direction"], inputs, outputs, meta["params"], meta["environment"],
            meta.get("reported"), meta.get("source"),
        )  # fmt: skip

    def meta(self) -> dict[str, Any]:
        if "meta" not in self.archive.names:
            raise self.wrong(
                "it has no 'meta', so it is not a case file: `refkernels explain OP --input ... "
                "--output ... --save CASE.npz` writes one."
            )
        raw = self.archive.read("meta", _META_BYTES)
        if raw.dtype != np.uint8 or raw.ndim != 1:
            raise self.wrong("its 'meta' is not JSON as bytes.")
        try:
            meta = codec.loads(raw.tobytes().decode(), depth=_META_DEPTH)
        except ValueError as error:
            raise self.wrong(f"its 'meta' is not JSON ({error}).") from None
        if not isinstance(meta, dict) or meta.get("kind") != "case":
            raise self.wrong("its 'meta' is not that of a case.")
        if meta.get("schema") != SCHEMA:
            raise self.wrong(
                f"it has schema {meta.get('schema')!r} where this version reads {SCHEMA}: use the "
                "version of refkernels that wrote it, or a newer one."
            )
        return self.checked(meta)

    def checked(self, meta: dict[str, Any]) -> dict[str, Any]:
        try:
            if self.oracle is None:
                registry.get(str(meta.get("op")))
        except ValueError as error:
            raise self.wrong(f"{error} An oracle of one's own is given beside the case.") from None
        if meta.get("direction") not in DIRECTIONS:
            raise self.wrong(f"its direction is {meta.get('direction')!r}.")
        for name in ("params", "dtypes", "environment"):
            if not isinstance(meta.setdefault(name, {}), dict):
                raise self.wrong(f"its {name} are not a JSON object.")
        for name, value in meta["params"].items():
            try:
                check_parameter(value)
            except ValueError as error:
                raise self.wrong(f"its parameter {name!r} cannot be used: {error}.") from None
        environments = list(meta["environment"].values())
        if not all(isinstance(environment, dict) for environment in environments):
            raise self.wrong("its environment is not one JSON object for each kernel.")
        settings = [environment.get("settings") or {} for environment in environments]
        if not all(isinstance(values, dict) for values in settings):
            raise self.wrong("its environment has settings that are not a JSON object.")
        if not isinstance(meta.get("source"), str | None):
            raise self.wrong("its source is not a string.")
        return meta

    def array(self, key: str, dtypes: Mapping[str, Any]) -> Array:
        stored = self.archive.read(key)
        name = dtypes.get(key)
        if key.startswith("input.") and name == stored.dtype.name in ("int64", "bool", "int8"):
            return stored
        low = [dtype for dtype in LOW if key.startswith("input.") and name == dtype.name]
        if low and stored.dtype == np.uint8:
            return stored.view(low[0])
        if stored.dtype.kind not in "fu":
            raise self.wrong(f"{key} has dtype {stored.dtype}: a case holds floats.")
        if not isinstance(name, str) or name not in DTYPES:
            raise self.wrong(
                f"{key} is declared {name!r}, which is not one of {', '.join(DTYPES)}."
            )
        format = formats.get(name)
        expected = format.bits_dtype if name == "bfloat16" else format.storage
        if stored.dtype != expected:
            raise self.wrong(f"{key} is stored as {stored.dtype} where {name} is {expected}.")
        return stored.view(format.storage)
