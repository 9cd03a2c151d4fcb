"""A captured run, read back from the files of `refkernels.capture` (format: docs/capture.md).

`Run.read(folder)` reads every rank's run.json and steps.jsonl and checks the header of every step's
tensors; the tensors themselves stay in their files until they are used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from refkernels.alignment.recorded import Draws, Group, Layer, Optimizer, Parameter, Rank, StepLine
from refkernels.alignment.steps import LayerCall, StepTensors, open_step
from refkernels.alignment.tensors import CaptureError, grouped, json_of
from refkernels.arguments import as_path
from refkernels.records.array_files import ArrayFileError, opened
from refkernels.suggestion import path_shown

__all__ = ["CaptureError", "Layer", "LayerCall", "Rank", "Run", "StepLine", "StepTensors"]

_RANK = re.compile(r"rank_(\d{1,9})")
_STEP = re.compile(r"step_(\d{6,18})\.safetensors")
T = TypeVar("T")


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
    run = json_of(_read_text(path), str(path), "run")
    remarks: list[str] = []
    lines = _read_lines(folder / "steps.jsonl", remarks)
    if not run["complete"]:
        remarks.insert(0, f"{folder} was not finished: the run was killed, or is still going.")
    damaged = _damaged(folder, lines, run["rank"], remarks)
    kinds: dict[str, type[Any]] = {"parameters": Parameter, "buffers": Parameter, "layers": Layer}
    named: dict[str, Any] = {
        word: {one["name"]: _object(kind, one) for one in run.get(word) or ()}
        for word, kind in kinds.items()
    }
    optimizer = run.get("optimizer")
    groups = tuple(map(_group, optimizer["groups"])) if optimizer else ()
    return _object(
        Rank, run, folder=folder, lines=lines, remarks=tuple(remarks), damaged=damaged, **named,
        optimizer=_object(Optimizer, optimizer, groups=groups) if optimizer else None,
        draws=_object(Draws, run.get("random") or {}),
    )  # fmt: skip


def _object(kind: type[T], value: Mapping[str, Any], **given: Any) -> T:
    """The dataclass of a JSON object that obeys its rule. `given`: fields that are not the file's;
    what is null, or absent, has the field's default."""
    held = {one.name: value.get(one.name) for one in fields(kind) if one.init}  # type: ignore[arg-type]
    known = {name: tuple(v) if isinstance(v, list) else v for name, v in held.items()}
    return kind(**{name: v for name, v in known.items() if v is not None} | given)


def _group(value: dict[str, Any]) -> Group:
    """A parameter group; all that it holds beside names are hyper-parameters."""
    return Group(tuple(value.pop("parameters")), tuple(value.pop("exempt", None) or ()), value)


def _line(value: dict[str, Any]) -> StepLine:
    """A line of steps.jsonl; floats that JSON cannot hold end with _hex."""
    hashes = value.get("hash") or {}
    given = {f"{word}_hash": hashes.get(word) for word in ("batch", "parameters", "gradients")}
    for name in ("loss", "gradient_norm"):
        text = value.get(f"{name}_hex")
        given[name] = None if text is None else float.fromhex(text)
    return _object(StepLine, value, **given)


def _read_lines(path: Path, remarks: list[str]) -> tuple[StepLine, ...]:
    """The complete lines, in order; a line that cannot be read becomes a remark."""
    *complete_lines, unfinished = _read_text(path).split("\n")
    if unfinished:
        remarks.append(f"{path} ends within a line: its last step was not finished.")
    step_lines: list[StepLine] = []
    for number, text in enumerate(complete_lines, 1):
        where = f"{path}: line {number}"
        try:
            line = _line(json_of(text, where, "line"))
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
