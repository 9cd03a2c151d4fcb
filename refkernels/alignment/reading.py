"""One rank of a captured run, read from its folder: each field with its type, each line by itself.

Damage stays local: a line that cannot be read, or a step whose file is damaged, becomes a remark,
and the rest is read.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from refkernels.alignment.fields import read_object
from refkernels.alignment.recorded import Rank, StepLine
from refkernels.alignment.steps import FORMAT, FORMAT_VERSION, open_step
from refkernels.alignment.tensors import CaptureError, json_of
from refkernels.records.array_files import ArrayFileError, opened

_STEP = re.compile(r"step_(\d{6,18})\.safetensors")


def _read_text(path: Path) -> str:
    try:
        with opened(path) as file:
            content = file.read()
    except ArrayFileError as error:
        raise CaptureError(str(error)) from None
    try:
        return content.decode("utf-8")
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
    all_remarks, damaged = _check_steps(folder, lines, rank.rank, remarks)
    return replace(rank, remarks=all_remarks, damaged=damaged)


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
                raise CaptureError(
                    f"{where}: step {line.step} does not follow {step_lines[-1].step}."
                )
            step_lines.append(line)
        except CaptureError as error:
            remarks.append(str(error))
    return tuple(step_lines)


def _check_steps(
    folder: Path, lines: tuple[StepLine, ...], rank: int, remarks: list[str]
) -> tuple[tuple[str, ...], dict[int, str]]:
    """All remarks, and by step the reason why tensors that a line announces cannot be read."""
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
    return tuple(remarks), damaged
