"""Where a run stands, for whoever shows it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """The unit that is worked on, and how much is done of how much there is in all: units of a
    measurement, inputs of a sweep."""

    unit: str
    done: int
    total: int
