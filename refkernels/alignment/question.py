"""A question from a captured run that an oracle can check: one op, its inputs and outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from refkernels.alignment.tensors import Array
from refkernels.op import Direction

Stage = Literal["forward", "backward", "clip", "update"]  # in a step's order


@dataclass(frozen=True)
class Place:
    """A place in a run: a step, a stage, and a layer or parameter group."""

    step: int
    stage: Stage
    name: str
    order: int = 0  # the layer's index in the forward pass, or the group's in the optimizer
    rank: int = 0

    @property
    def when(self) -> tuple[int, int, int, int]:
        """The key that sorts places as a run reaches them: backward passes start at the last
        layer."""
        turn = -self.order if self.stage == "backward" else self.order
        return self.step, get_args(Stage).index(self.stage), turn, self.rank


@dataclass(frozen=True)
class CapturedQuestion:
    """An op's question, and the run's answer. `parts`: the parameters that an optimizer's question
    concatenates, and where each of them ends; `own`: causes that the framework documents as its own
    definition; `users`: whether the layer is of the user's own class, whose name declares nothing;
    `elsewhere`: whether a weight's gradient has parts from outside these calls."""

    place: Place
    op: str
    direction: Direction
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    outputs: Mapping[str, Array]
    type: str
    parts: tuple[tuple[str, int], ...] = ()
    own: tuple[str, ...] = ()
    elsewhere: bool = False
    users: bool = False

    @property
    def digest(self) -> bytes:
        """Of all but the place: what a judgement depends on."""
        rest = replace(self, place=Place(0, "forward", ""), inputs={}, outputs={})
        digest = hashlib.sha256(repr(rest).encode())
        for name, array in (*self.inputs.items(), *self.outputs.items()):
            digest.update(f"{name}{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return digest.digest()

    def part(self, index: int) -> str:
        """The parameter that an element of the concatenation belongs to."""
        return next((name for name, end in self.parts if index < end), self.place.name)


class NotJudged(Exception):
    """Why a layer or an update is not judged."""


@dataclass(frozen=True)
class Unjudged:
    """A captured layer or update that is not judged, and the reason."""

    name: str
    type: str
    reason: str


Read = Iterator[CapturedQuestion | Unjudged]  # of a step, as it is reached
