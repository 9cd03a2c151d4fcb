"""A captured step's tensors by role: parameters, gradients, state, calls of layers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from refkernels.alignment.tensors import Array, CaptureError, TensorFile, json_of

_STATE = re.compile(r"state/(.*)/([^/]+)/([^/]+)", re.DOTALL)
_ROLES = {  # of a call's tensors, by the pass and the word in their names
    ("forward", "inputs"): "inputs", ("forward", "outputs"): "outputs",
    ("backward", "cotangents"): "cotangents", ("backward", "inputs"): "input_gradients",
}  # fmt: skip


@dataclass(frozen=True)
class LayerCall:
    """One call of a layer: arrays by position, keyword, or path such as "0.1".

    inputs, outputs     of the forward pass
    scalars             inputs that are not tensors
    cotangents          gradients of the objective with respect to the outputs
    input_gradients     with respect to the inputs, this call's part alone
    """

    layer: str
    index: int
    inputs: Mapping[str, Array] = field(default_factory=dict)
    outputs: Mapping[str, Array] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)
    cotangents: Mapping[str, Array] = field(default_factory=dict)
    input_gradients: Mapping[str, Array] = field(default_factory=dict)


class StepTensors:
    """The tensors of one step of one rank: read-only arrays on the mapped file."""

    def __init__(self, file: TensorFile, scalars: Mapping[str, Any]) -> None:
        self.file = file
        self.scalars = scalars

    def parameter(self, name: str, when: str = "before") -> Array | None:
        """A parameter "before" or "after" the update."""
        return self.file.get(f"parameters/{name}/{when}")

    def buffer(self, name: str, when: str = "before") -> Array | None:
        """A buffer "before" or "after" the step."""
        return self.file.get(f"buffers/{name}/{when}")

    def held(self, name: str, when: str) -> dict[str, Array]:
        """The states of a parameter; the parameter, or a buffer, as ""."""
        value = self.parameter(name, when)
        value = self.buffer(name, when) if value is None else value
        return self.state(name, when) | ({} if value is None else {"": value})

    def gradient(self, name: str, when: str = "update") -> Array | None:
        """A gradient as "backward" left it, as the "update" received it, or "clipped" inside it."""
        return self.file.get(f"gradients/{name}/{when}")

    def received(self, name: str) -> Array | None:
        """The gradient that the update takes, after the optimizer's own clipping."""
        clipped = self.gradient(name, "clipped")
        return self.gradient(name) if clipped is None else clipped

    def state(self, name: str, when: str = "before") -> dict[str, Array]:
        """The optimizer state of a parameter, by name; for "", the state that belongs to no
        parameter."""
        words = self._states.get((name, when), {})
        return {word: self.file[full] for word, full in words.items()}

    @cached_property
    def _states(self) -> dict[tuple[str, str], dict[str, str]]:
        states: dict[tuple[str, str], dict[str, str]] = {}
        for found in filter(None, map(_STATE.fullmatch, self.file)):
            states.setdefault((found[1], found[3]), {})[found[2]] = found[0]
        return states

    def calls(self, layer: str) -> tuple[LayerCall, ...]:
        """The calls of a layer in this step, in order."""
        return self._calls.get(layer, ())

    def listed(self, word: str) -> tuple[str, ...]:
        """The names of layers that were called, and "left_out" for others of their kind; or of
        whose tensors some "items" of the first axis were kept."""
        text = self.file.metadata.get(word, "[]")
        return tuple(json_of(text, f"{self.file.path}: {word}", "texts") or ())

    @cached_property
    def _calls(self) -> dict[str, tuple[LayerCall, ...]]:
        calls_by_layer: dict[str, dict[int, dict[str, dict[str, Any]]]] = {}
        for full in (*sorted(self.file), *sorted(self.scalars)):
            layer, *rest = full.rsplit("/", 4)
            if len(rest) < 4 or not layer.startswith("layers/"):
                continue
            stage, index, word, path = rest
            if (stage, word) in _ROLES and index.isdecimal():
                calls = calls_by_layer.setdefault(layer.removeprefix("layers/"), {})
                scalar = full not in self.file
                role = "scalars" if scalar else _ROLES[stage, word]
                value = self.scalars[full] if scalar else self.file[full]
                calls.setdefault(int(index), {}).setdefault(role, {})[path] = value
        return {
            layer: tuple(LayerCall(layer, index, **calls[index]) for index in sorted(calls))
            for layer, calls in calls_by_layer.items()
        }


def open_step(folder: Path, step: int, rank: int) -> StepTensors:
    """The tensors of a step in the folder of its rank. Raises CaptureError."""
    file = TensorFile(folder / f"step_{step:06d}.safetensors")
    metadata = file.metadata
    if (metadata.get("format"), metadata.get("format_version")) != ("refkernels-capture", "1"):
        raise CaptureError(f"{file.path} was not written by refkernels.capture.")
    if (metadata.get("step"), metadata.get("rank")) != (str(step), str(rank)):
        claimed = metadata.get("step")
        raise CaptureError(f"{file.path} claims to be step {claimed!r} of another rank.")
    scalars = json_of(metadata.get("scalars", "{}"), f"{file.path}: scalars", "scalars")
    return StepTensors(file, scalars)
