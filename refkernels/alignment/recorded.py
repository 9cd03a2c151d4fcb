"""The record of a captured run: parameters, layers, optimizer, and a line for each step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from refkernels.alignment.steps import StepTensors, open_step
from refkernels.alignment.tensors import CaptureError

_KEPT = 2  # steps whose headers are kept
ROOT = "(root)"  # the layer that is the whole model


@dataclass(frozen=True)
class Parameter:
    """A parameter or a buffer. `dtype`: the name that safetensors uses; `group`: the index of its
    optimizer group, None where no group has it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool = False
    group: int | None = None


@dataclass(frozen=True)
class Layer:
    """A layer. `parameters` and `buffers`: the names of its tensors by the layer's own names."""

    name: str
    type: str
    module: str
    calls: int
    recorded: bool
    training: bool
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    buffers: Mapping[str, str] = field(default_factory=dict)
    signature: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """A parameter group at entry. `exempt`: parameters that the optimizer itself does not decay."""

    parameters: tuple[str, ...]
    exempt: tuple[str, ...]
    hyperparameters: Mapping[str, Any]


@dataclass(frozen=True)
class Optimizer:
    """The optimizer at entry. `state`: the framework's own name for each name of the state."""

    type: str
    module: str
    groups: tuple[Group, ...]
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StepLine:
    """A finished step. Figures may be infinities and NaN; None: not recorded."""

    step: int
    updates: int
    captured: bool
    loss: float | None = None
    loss_dtype: str | None = None
    lr: tuple[float, ...] | None = None
    gradient_norm: float | None = None
    batch_hash: str | None = None
    parameters_hash: str | None = None
    gradients_hash: str | None = None
    rows: tuple[str, ...] | None = None
    reason: str | None = None
    changed: tuple[Mapping[str, Any], ...] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Draws:
    """Where chosen steps drew random numbers: inside these `layers`; `before` the first layer of a
    step (data, noise); `outside`, between layers."""

    layers: tuple[str, ...] = ()
    before: bool = False
    outside: bool = False


@dataclass(frozen=True)
class Rank:
    """The record of one process of a run. `remarks`: what is missing or damaged; `damaged`: the
    reasons by step."""

    folder: Path
    complete: bool
    framework: str
    versions: Mapping[str, str]
    rank: int
    world_size: int
    model: str
    parameters: Mapping[str, Parameter]
    optimizer: Optimizer | None = None
    perturbed: Mapping[str, Any] | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    initial_parameters: str = ""
    buffers: Mapping[str, Parameter] = field(default_factory=dict)
    layers: Mapping[str, Layer] = field(default_factory=dict)
    not_captured: tuple[str, ...] = ()
    lines: tuple[StepLine, ...] = ()
    remarks: tuple[str, ...] = ()
    draws: Draws = field(default_factory=Draws)
    damaged: Mapping[int, str] = field(default_factory=dict)
    _open: dict[int, StepTensors] = field(default_factory=dict, init=False, compare=False)

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps whose tensors can be read."""
        captured = (line.step for line in self.lines if line.captured)
        return tuple(step for step in captured if step not in self.damaged)

    def skipped(self, line: StepLine) -> bool:
        """Whether a loss scaler skipped the update of a step: its gradients are not finite, and no
        parameter moved."""
        norm = line.gradient_norm
        if norm is None or math.isfinite(norm):
            return False
        before = self.entered(line.step)
        return line.updates == 0 or (before is not None and before == line.parameters_hash)

    def entered(self, step: int) -> str | None:
        """The hash of the parameters with which a step begins."""
        hashes = [earlier.parameters_hash for earlier in self.lines if earlier.step < step]
        return hashes[-1] if hashes else self.initial_parameters

    def contains(self, layer: str) -> bool:
        """Whether a layer contains other layers."""
        others = (name for name in self.layers if name != layer)
        return any(layer == ROOT or name.startswith(f"{layer}.") for name in others)

    def tensors(self, step: int) -> StepTensors:
        """The tensors of a chosen step. Raises CaptureError with the reason where it has none."""
        if step in self.damaged:
            raise CaptureError(self.damaged[step])
        if step not in self.steps:
            listed = ", ".join(map(str, self.steps)) or "none"
            raise CaptureError(f"{self.folder} has no tensors of step {step}; it has {listed}.")
        if step not in self._open:
            while len(self._open) >= _KEPT:
                self._open.pop(next(iter(self._open)))
            self._open[step] = open_step(self.folder, step, self.rank)
        return self._open[step]
