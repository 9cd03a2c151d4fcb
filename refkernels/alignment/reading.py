"""One rank of a captured run, read from its folder: each field with its type, each line by itself.

Damage stays local: a line that cannot be read, or a step whose file is damaged, becomes a remark,
and the rest is read.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from refkernels.alignment.fields import Fields, json_of
from refkernels.alignment.recorded import (
    Draws,
    Group,
    Layer,
    Optimizer,
    Parameter,
    Rank,
    StepLine,
)  # fmt: skip
from refkernels.alignment.steps import FORMAT, FORMAT_VERSION, open_step
from refkernels.alignment.tensors import CaptureError
from refkernels.records.array_files import ArrayFileError, opened

_LARGEST_TEXT = 2**30
_STEP = re.compile(r"step_(\d{6,18})\.safetensors")


def _read_text(path: Path) -> str:
    try:
        with opened(path) as file:
            content = file.read(_LARGEST_TEXT + 1)
    except ArrayFileError as error:
        raise CaptureError(str(error)) from None
    if len(content) > _LARGEST_TEXT:
        raise CaptureError(f"{path} has more than {_LARGEST_TEXT:,} bytes.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CaptureError(f"{path} is not UTF-8 text (byte {error.start}).") from None


def read_rank(folder: Path) -> Rank:
    """The record of one process. Raises CaptureError where run.json cannot be read."""
    path = folder / "run.json"
    run = Fields(json_of(_read_text(path), str(path)), str(path))
    if run.values.get("format") != FORMAT:
        raise CaptureError(f"{path} was not written by refkernels.capture.")
    if (version := run.count("format_version")) != FORMAT_VERSION:
        raise CaptureError(f"{path} has format version {version}; this reads {FORMAT_VERSION}.")
    optimizer = run.maybe("optimizer", dict)
    parameters = run.objects("parameters", _parameter)
    layers = run.objects("layers", _layer)
    rank, complete = run.count("rank"), run.flag("complete")
    if (world := run.count("world_size")) < 1 or world > 10**6:
        raise CaptureError(f"{path}: world_size is {world}.")
    remarks = (
        [] if complete else [f"{folder} was not finished: the run was killed, or is still going."]
    )
    lines = _read_lines(folder / "steps.jsonl", remarks)
    draws = run.maybe("random", dict)
    all_remarks, damaged = _check_steps(folder, lines, rank, remarks)
    return Rank(
        folder, complete, run.text("framework"), run.texts("versions"), run.mapping("device"),
        run.mapping("flags"), run.texts("environment"), run.mapping("seeds"), rank,
        world, run.tuple_of("steps", int), run.count("every"), run.mapping("notes"),
        run.maybe("perturbed", dict), run.text("initial_parameters"), run.text("model"),
        {item.name: item for item in parameters},
        {item.name: item for item in run.objects("buffers", _parameter)},
        None if optimizer is None else _optimizer(Fields(optimizer, f"{path}: optimizer")),
        {item.name: item for item in layers}, run.tuple_of("not_captured", str),
        lines, all_remarks, Draws() if draws is None else _draws(Fields(draws, f"{path}: random")),
        damaged,
    )  # fmt: skip


def _read_lines(path: Path, remarks: list[str]) -> tuple[StepLine, ...]:
    """The complete lines, in order; a line that cannot be read becomes a remark."""
    *complete_lines, unfinished = _read_text(path).split("\n")
    if unfinished:
        remarks.append(f"{path} ends within a line: its last step was not finished.")
    step_lines: list[StepLine] = []
    for number, text in enumerate(complete_lines, 1):
        where = f"{path}: line {number}"
        try:
            line = _line(Fields(json_of(text, where), where))
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


def _parameter(fields: Fields) -> Parameter:
    return Parameter(
        fields.text("name"), fields.tuple_of("shape", int), fields.text("dtype"),
        fields.maybe("own_name", str) or "", bool(fields.maybe("trainable", bool)),
        fields.maybe("group", int), fields.maybe("device", str) or "",
    )  # fmt: skip


def _layer(fields: Fields) -> Layer:
    return Layer(
        fields.text("name"), fields.text("type"), fields.text("module"), fields.count("calls"),
        fields.flag("recorded"), fields.flag("training"), fields.mapping("hyperparameters"),
        fields.texts("parameters"), fields.texts("buffers"), fields.tuple_of("signature", str),
    )  # fmt: skip


def _draws(fields: Fields) -> Draws:
    return Draws(fields.tuple_of("layers", str), fields.flag("before"), fields.flag("outside"))


def _group(fields: Fields) -> Group:
    names = fields.tuple_of("parameters", str), fields.tuple_of("exempt", str)
    values = {key: value for key, value in fields.values.items()
              if key not in ("parameters", "exempt")}  # fmt: skip
    return Group(*names, values)


def _optimizer(fields: Fields) -> Optimizer:
    return Optimizer(
        fields.text("type"), fields.text("module"), fields.mapping("hyperparameters"),
        fields.objects("groups", _group), fields.texts("state"),
    )  # fmt: skip


def _line(fields: Fields) -> StepLine:
    hashes = Fields(fields.mapping("hash"), f"{fields.where}: hash")
    rates = None if fields.values.get("lr") is None else fields.tuple_of("lr", float)
    rows = None if fields.values.get("rows") is None else fields.tuple_of("rows", str)
    changed = None if fields.values.get("changed") is None else fields.tuple_of("changed", dict)
    seconds = fields.maybe("seconds", float)
    return StepLine(
        fields.count("step"), fields.hexadecimal("loss_hex"), fields.maybe("loss_dtype", str),
        rates, fields.values.get("lr_given"), fields.hexadecimal("gradient_norm_hex"),
        fields.count("updates"), hashes.maybe("batch", str), hashes.maybe("parameters", str),
        hashes.maybe("gradients", str), rows, 0.0 if seconds is None else seconds,
        fields.flag("captured"), fields.maybe("reason", str), changed, fields.mapping("values"),
    )  # fmt: skip
