"""A suspect: what may make two runs different trainings, or one run another than it declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Topic = Literal[
    "data", "ranks", "weights", "dtype", "model", "layer", "optimizer", "forward", "loss",
    "backward", "gradient", "clip", "schedule", "update", "setup",
]  # fmt: skip


@dataclass(frozen=True)
class Suspect:
    """`where`: its subject; `a`, `b`: each run's value, "" for none; `step`: where it is first
    seen; `decisive`: whether it makes the runs different trainings; `kind`: the sentence that
    reports it, with the numbers of `details`; `run`: "A", "B", or "" where only the comparison
    shows it; `places`: how many places have the same cause, this one included."""

    topic: Topic
    where: str
    a: str = ""
    b: str = ""
    step: int = 0
    decisive: bool = True
    kind: str = "value"
    details: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""
    places: int = 1

    @property
    def rank(self) -> tuple[int, int]:
        """The key of the order of suspicion, which is that of a training step."""
        return self.step, get_args(Topic).index(self.topic)
