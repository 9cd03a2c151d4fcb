"""The progress of a run, for display."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """The unit in progress, and the work done out of the total: units of a measurement, inputs of a
    sweep."""

    unit: str
    done: int
    total: int
