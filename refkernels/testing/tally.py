"""The figures that the pytest plugin prints at the end: assertions run, and the worst of them."""

import os
from dataclasses import dataclass


@dataclass
class AssertionTally:
    """The figures of this process. `where`: the output and test of the largest error / bound.
    `width`: the error that the widest bound allows, as a share of the result, and `widest` whose.
    """

    assertions: int = 0
    unusual: int = 0
    largest_ratio: float = 0.0
    where: str = ""
    width: float = 0.0
    widest: str = ""

    def add(self, output: str, ratio: float, width: float = 0.0) -> None:
        self.assertions += 1
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0]
        name = f"{output}, {test}" if test else output
        if ratio > self.largest_ratio or not self.where:
            self.largest_ratio, self.where = ratio, name
        if width > self.width:
            self.width, self.widest = width, name


TALLY = AssertionTally()
