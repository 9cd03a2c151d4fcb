"""What a captured run says that an oracle can check: one op, its inputs, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from refkernels.op import Direction

Array = npt.NDArray[Any]
Stage = Literal["forward", "backward", "clip", "update"]
STAGES: tuple[Stage, ...] = (
    "forward",
    "backward",
    "clip",
    "update",
)  # of a training step, in order


@dataclass(frozen=True)
class Place:
    """Where in a run: a stage of a step, of a layer, or of a parameter group."""

    step: int
    stage: Stage
    name: str
    order: int = 0  # of the layer in the forward pass, of the group in the optimizer
    rank: int = 0

    @property
    def when(self) -> tuple[int, int, int, int]:
        """For sorting: what comes first in a run. Backward passes run from the last layer."""
        turn = -self.order if self.stage == "backward" else self.order
        return self.step, STAGES.index(self.stage), turn, self.rank


@dataclass(frozen=True)
class CapturedQuestion:
    """An op's question, and the run's answer. `parts`: the parameters that an optimizer's question
    puts end to end, and where each of them ends; `own`: causes that the framework's documentation
    gives as its own definition."""

    place: Place
    op: str
    direction: Direction
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    outputs: Mapping[str, Array]
    type: str
    parts: tuple[tuple[str, int], ...] = ()
    own: tuple[str, ...] = ()

    def part(self, index: int) -> str:
        """The parameter that an element of the whole belongs to."""
        return next((name for name, end in self.parts if index < end), self.place.name)


@dataclass(frozen=True)
class Unjudged:
    """What was captured and is not judged, and why."""

    name: str
    type: str
    reason: str


@dataclass(frozen=True)
class Read:
    """What is to be judged of a step, and what is not."""

    questions: tuple[CapturedQuestion, ...] = ()
    unjudged: tuple[Unjudged, ...] = field(default=())


def joined(arrays: list[Array]) -> Array | None:
    """Calls of a layer one behind the other, along the first axis; None where they do not fit."""
    shapes = {array.shape[1:] for array in arrays}
    scalars = len(arrays) > 1 and any(array.ndim == 0 for array in arrays)
    if len(shapes) != 1 or scalars:
        return None
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
