"""A captured run, read back from the files of `refkernels.capture` (format: docs/capture.md).

`Run.read(folder)` reads every rank's run.json and steps.jsonl and checks the header of every step's
tensors; the tensors themselves stay in their files until they are used.
"""

from __future__ import annotations

import os
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from refkernels.alignment.recorded import Layer, Rank, StepLine
from refkernels.alignment.steps import FORMAT, FORMAT_VERSION, LayerCall, StepTensors, open_step
from refkernels.alignment.tensors import CaptureError, grouped, json_of
from refkernels.arguments import as_path
from refkernels.records.array_files import ArrayFileError, opened
from refkernels.suggestion import path_shown

__all__ = ["CaptureError", "Layer", "LayerCall", "Rank", "Run", "StepLine", "StepTensors"]

_RANK = re.compile(r"rank_(\d{1,9})")
_STEP = re.compile(r"step_(\d{6,18})\.safetensors")
T = TypeVar("T")
_WORDS = {
    str: "a string", int: "a whole number", float: "a number", bool: "true or false",
    list: "a list", dict: "an object",
}  # fmt: skip
# The file's keys of fields with other names; a dot leads into an object. Keys of floats that JSON
# cannot hold end with _hex.
_KEYS = {
    "loss": "loss_hex", "gradient_norm": "gradient_norm_hex", "batch_hash": "hash.batch",
    "parameters_hash": "hash.parameters", "gradients_hash": "hash.gradients", "draws": "random",
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A captured run: its ranks in order."""

    folder: Path
    ranks: tuple[Rank, ...]

    @property
    def first(self) -> Rank:
        """The first rank that was recorded."""
        return self.ranks[0]

    @property
    def lines(self) -> dict[int, list[StepLine]]:
        """The lines of all ranks, by step."""
        return grouped((line for rank in self.ranks for line in rank.lines), lambda one: one.step)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is missing or damaged, over all ranks."""
        remarks = [remark for rank in self.ranks for remark in rank.remarks]
        size = max(rank.world_size for rank in self.ranks)
        missing = sorted(set(range(size)) - {rank.rank for rank in self.ranks})[:9]
        if missing:
            listed = ", ".join(map(str, missing))
            remarks.append(f"{self.folder} lacks these ranks of {size}: {listed}.")
        return tuple(remarks)

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Run:
        """The run in a folder; in a rank's folder, a run of that rank alone. Raises
        CaptureError."""
        path = as_path(folder, "folder")
        try:
            names = sorted(os.listdir(path))
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None
        if "run.json" in names:
            return cls(path, (read_rank(path),))
        matches = filter(None, map(_RANK.fullmatch, names))
        numbered = sorted((int(match[1]), match[0]) for match in matches)
        if not numbered:
            raise CaptureError(f"{path} holds no captured run: no rank_0/run.json, nor run.json.")
        ranks = tuple(read_rank(path / name) for _, name in numbered)
        for (number, name), rank in zip(numbered, ranks, strict=True):
            if number != rank.rank:
                raise CaptureError(f"{path / name} says that it is rank {rank.rank}.")
        return cls(path, ranks)


def runs_in(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The folder itself if it holds a run, else the folders of runs inside it, in order. Raises
    CaptureError where there are neither."""
    path = as_path(folder, "folder")
    try:
        inner = sorted(inside for inside in path.iterdir() if inside.is_dir())
    except OSError as error:
        raise _unreadable(path, error) from None
    if (path / "run.json").exists() or any(_RANK.fullmatch(inside.name) for inside in inner):
        return (path,)
    runs = tuple(inside for inside in inner if (inside / "rank_0" / "run.json").exists())
    if not runs:
        raise CaptureError(f"{path} holds no captured run, and no folder of one.")
    return runs


def _unreadable(path: Path, error: OSError | ValueError) -> CaptureError:
    reason = getattr(error, "strerror", None) or error
    return CaptureError(f"{path_shown(path)} is not a folder that can be read ({reason}).")


def _read_text(path: Path) -> str:
    try:
        with opened(path) as file:
            return str(file.read(), "utf-8")
    except ArrayFileError as error:
        raise CaptureError(str(error)) from None
    except UnicodeDecodeError as error:
        raise CaptureError(f"{path} is not UTF-8 text (byte {error.start}).") from None


def read_rank(folder: Path) -> Rank:
    """The record of one process. Raises CaptureError where run.json cannot be read."""
    path = folder / "run.json"
    run = json_of(_read_text(path), str(path))
    if isinstance(run, dict):
        if run.get("format") != FORMAT:
            raise CaptureError(f"{path} was not written by refkernels.capture.")
        if run.get("format_version") != FORMAT_VERSION:
            version = run.get("format_version")
            raise CaptureError(f"{path} has format version {version}; this reads {FORMAT_VERSION}.")
    remarks: list[str] = []
    lines = _read_lines(folder / "steps.jsonl", remarks)
    rank = read_object(Rank, run, str(path), folder=folder, lines=lines, remarks=(), damaged={})
    if not 1 <= rank.world_size <= 10**6:
        raise CaptureError(f"{path}: world_size is {rank.world_size}.")
    if not rank.complete:
        remarks.insert(0, f"{folder} was not finished: the run was killed, or is still going.")
    damaged = _damaged(folder, lines, rank.rank, remarks)
    return replace(rank, remarks=tuple(remarks), damaged=damaged)


def _read_lines(path: Path, remarks: list[str]) -> tuple[StepLine, ...]:
    """The complete lines, in order; a line that cannot be read becomes a remark."""
    *complete_lines, unfinished = _read_text(path).split("\n")
    if unfinished:
        remarks.append(f"{path} ends within a line: its last step was not finished.")
    step_lines: list[StepLine] = []
    for number, text in enumerate(complete_lines, 1):
        where = f"{path}: line {number}"
        try:
            line = read_object(StepLine, json_of(text, where), where)
            if step_lines and line.step <= step_lines[-1].step:
                last = step_lines[-1].step
                raise CaptureError(f"{where}: step {line.step} does not follow {last}.")
            step_lines.append(line)
        except CaptureError as error:
            remarks.append(str(error))
    return tuple(step_lines)


def _damaged(
    folder: Path, lines: tuple[StepLine, ...], rank: int, remarks: list[str]
) -> dict[int, str]:
    """By step the reason why tensors that a line announces cannot be read; all are remarks too."""
    damaged = {}
    for line in lines:
        if line.reason is not None:
            remarks.append(f"{folder}: step {line.step} has no tensors: {line.reason}.")
        if not line.captured:
            continue
        try:
            open_step(folder, line.step, rank)
        except CaptureError as error:
            damaged[line.step] = str(error)
            remarks.append(str(error))
    announced = {line.step for line in lines if line.captured}
    for name in sorted(os.listdir(folder)):
        match = _STEP.fullmatch(name)
        if match and int(match[1]) not in announced:
            remarks.append(f"{folder / name} belongs to a step that was not finished.")
    return damaged


def read_object(kind: type[T], value: Any, where: str, **given: Any) -> T:
    """The dataclass of a JSON object; `where` names it in errors, which are CaptureErrors. `given`:
    fields that are not the file's. A field that may be None, or has a default, may be absent; an
    absent mapping is all that no other field reads."""
    if not isinstance(value, dict):
        raise CaptureError(f"{where} is not a JSON object.")
    hints, found = get_type_hints(kind), dict(given)
    for one in fields(kind):  # type: ignore[arg-type]
        *outer, key = _KEYS.get(one.name, one.name).split(".")
        optional = one.default is not MISSING or one.default_factory is not MISSING
        inside = value
        for name in outer:
            inside = _read(dict, inside.get(name, {}), where, name)
        if one.name in given or (optional and inside.get(key) is None):
            continue
        if key in inside or type(None) in get_args(hints[one.name]):
            found[one.name] = _read(hints[one.name], inside.get(key), where, key)
        elif get_origin(hints[one.name]) is Mapping:
            found[one.name] = {k: v for k, v in value.items() if k not in hints}
        else:
            raise CaptureError(f"{where} lacks {key}.")
    return kind(**found)


def _read(kind: Any, value: Any, where: str, name: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        (known,) = (one for one in inner if one is not type(None))
        return None if value is None else _read(known, value, where, name)
    if name.endswith("_hex"):
        try:
            return float.fromhex(str(value))
        except (ValueError, OverflowError):
            raise CaptureError(f"{where}: {name} is not a hexadecimal float.") from None
    if is_dataclass(kind):
        return read_object(cast("type[Any]", kind), value, f"{where}: {name}")
    if origin is tuple or (origin is Mapping and is_dataclass(inner[1])):
        item_kind = inner[0] if origin is tuple else inner[1]
        items = _read(list, value, where, name)
        read = tuple(_read(item_kind, item, where, f"{name}[{k}]") for k, item in enumerate(items))
        return read if origin is tuple else {item.name: item for item in read}
    if origin is Mapping:
        items = _read(dict, value, where, name)
        return {key: _read(inner[1], item, where, f"{name}.{key}") for key, item in items.items()}
    right_type = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not right_type or (isinstance(value, bool) and kind is not bool):
        raise CaptureError(f"{where}: {name} must be {_WORDS[kind]}.")
    if kind is int and value < 0:
        raise CaptureError(f"{where}: {name} is {value}, and must not be negative.")
    return float(value) if kind is float else value
